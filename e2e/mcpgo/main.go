// Command mcpgo is an MCP server written with mcp-go, for the catalogue of
// servers that the outside tests put behind Gatehouse.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8701", "address to serve on")
	flag.Parse()
	s := server.NewMCPServer("weights-and-measures", "1.0.0", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("to_grams",
		mcp.WithDescription("Converts ounces to grams."),
		mcp.WithNumber("ounces", mcp.Required()),
	), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ounces, err := r.RequireFloat("ounces")
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultJSON(map[string]float64{"grams": ounces * 28.349523125})
	})
	log.Fatal(server.NewStreamableHTTPServer(s).Start(*listen))
}
