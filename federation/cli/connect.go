package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gatehouse/federation"
	"gatehouse/federation/config"
	"gatehouse/federation/control"
	"gatehouse/federation/state"
)

// defaultConfig is the file that is used when no other is named.
const defaultConfig = "gatehouse.toml"

// closeTimeout bounds how long a command waits for what it opened.
const closeTimeout = 10 * time.Second

// file finds the configuration: --config, else the default file when it is
// here, else $GATEHOUSE_CONFIG.
func (a *app) file() (string, error) {
	if a.configPath != "" {
		return a.configPath, nil
	}
	if _, err := os.Stat(defaultConfig); err == nil {
		return defaultConfig, nil
	}
	if path := a.getenv("GATEHOUSE_CONFIG"); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("%s: no such file here; write one with: %s init, or name one with --config", defaultConfig, program())
}

// load reads the configuration and reports everything that is wrong with it.
// Warnings are for those who look after the file, not for every command.
func (a *app) load(warn bool) (*config.Config, error) {
	path, err := a.file()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file; write one with: %s init", path, program())
	}
	cfg, problems := config.Load(path)
	errs := problems.Errors()
	if warn {
		errs = problems
	}
	for _, p := range errs {
		fmt.Fprintln(a.stderr, p)
	}
	if n := len(problems.Errors()); n > 0 {
		fmt.Fprintf(a.stderr, "%s: %s; nothing was started\n", filepath.Base(path), count(n, "problem"))
		return nil, errSilent
	}
	return cfg, nil
}

// connect reaches the daemon when one runs, and otherwise opens the state for
// this one command. Done gives up what was opened.
func (a *app) connect(ctx context.Context) (api control.API, done func(), err error) {
	cfg, err := a.load(false)
	if err != nil {
		return nil, nil, err
	}
	return a.connectTo(ctx, cfg)
}

func (a *app) connectTo(ctx context.Context, cfg *config.Config) (control.API, func(), error) {
	remote, err := control.Dial(ctx, cfg.SocketPath())
	if err == nil {
		return remote, remote.Close, nil
	}
	if !errors.Is(err, control.ErrNoDaemon) {
		return nil, nil, err
	}
	g, err := federation.Open(ctx, cfg, federation.Options{Version: a.version})
	if inUse, ok := errors.AsType[*state.InUseError](err); ok {
		// A daemon that is just starting holds the file before it answers.
		if remote, again := control.Dial(ctx, cfg.SocketPath()); again == nil {
			return remote, remote.Close, nil
		}
		return nil, nil, fmt.Errorf("%w; the command would have talked to it through %s, which does not answer; wait for that process or stop it",
			inUse, filepath.Base(cfg.SocketPath()))
	}
	if err != nil {
		return nil, nil, err
	}
	return control.NewLocal(g, false), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			fmt.Fprintf(a.stderr, "gatehouse: closing: %s\n", err)
		}
	}, nil
}

// with runs f on the control interface.
func (a *app) with(ctx context.Context, f func(context.Context, control.API) error) error {
	api, done, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	return f(ctx, api)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
