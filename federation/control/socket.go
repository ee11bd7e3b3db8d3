package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// longestSocket is what every system takes as the path of a socket.
const longestSocket = 100

// dialTimeout bounds the wait for a daemon that has the socket open.
const dialTimeout = time.Second

// ErrNoDaemon says that nobody listens at a socket.
var ErrNoDaemon = errors.New("no daemon is running")

// nearby is path as it is reached from here, when it is too long for a socket
// and that is shorter.
func nearby(path string) string {
	if len(path) <= longestSocket {
		return path
	}
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if relative, err := filepath.Rel(here, path); err == nil && len(relative) < len(path) {
		return relative
	}
	return path
}

// listenSocket opens the socket at path, for this user alone. Whoever calls
// holds the state file, so a socket that is there already was left behind by a
// process that is gone, and is replaced.
func listenSocket(path string) (net.Listener, error) {
	if len(path) > longestSocket {
		return nil, fmt.Errorf("%s: too long for a socket (%d characters, at most %d); set [state] path to a shorter one", path, len(path), longestSocket)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s: is in the way of the control socket and is none; move it elsewhere", path)
	}
	// Born in a directory that nobody else can enter, the socket is never open
	// to others, not even between its creation and its change of mode.
	dir, err := os.MkdirTemp(filepath.Dir(path), ".gh")
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer os.RemoveAll(dir)
	birth := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", birth)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(birth, 0o600), os.Rename(birth, path)); err != nil {
		listener.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return listener, nil
}

// dialer returns a client whose every connection goes to the socket at path.
func dialer(path string) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				d := net.Dialer{Timeout: dialTimeout}
				return d.DialContext(ctx, "unix", path)
			},
			Proxy:              nil,
			MaxIdleConns:       16,
			IdleConnTimeout:    time.Minute,
			DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// absent reports whether err of a dial means that no daemon listens, rather
// than that one does not answer.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}
