// Gatehouse is one MCP server in front of many, with a gate between: who asks,
// what may be offered to them, where its output may travel, who agreed, and a
// record of it all.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"gatehouse/federation/cli"
)

// version is set by the linker.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends a stop that takes too long
	code := cli.Run(ctx, version, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	stop()
	os.Exit(code)
}
