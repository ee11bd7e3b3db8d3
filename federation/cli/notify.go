package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"gatehouse/federation"
)

// A supervisor is the service manager that started us, when it wants to be told
// how we are: systemd with Type=notify. The zero value tells nobody.
type supervisor struct {
	socket string
	beat   time.Duration // how often it has to hear from us; 0: it does not
	log    *slog.Logger
}

// supervised finds the service manager in the environment (sd_notify(3),
// sd_watchdog_enabled(3)).
func (a *app) supervised(logger *slog.Logger) supervisor {
	s := supervisor{socket: a.getenv("NOTIFY_SOCKET"), log: logger}
	if pid := a.getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return s // meant for another process
	}
	if usec, err := strconv.ParseInt(a.getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
		s.beat = time.Duration(usec) * time.Microsecond / 2
	}
	return s
}

// tell sends one message. That nobody listens is the manager's affair.
func (s supervisor) tell(message string) {
	if s.socket == "" {
		return
	}
	// A leading @ is the abstract namespace, for systemd and for net alike.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"})
	if err == nil {
		_, err = conn.Write([]byte(message))
		conn.Close()
	}
	if err != nil {
		s.log.Warn("the service manager cannot be told", "error", err)
	}
}

// watch says that we are ready and then, at each beat, that we are alive, until
// ctx ends; then it says that we stop, which may take as long as drain. A beat is
// sent only after the gateway has answered: one that hangs is started anew, one
// that merely takes no calls, because a disk is full, is not. Wait returns when
// nothing more is sent.
func (s supervisor) watch(ctx context.Context, g *federation.Gateway, drain time.Duration) (wait func()) {
	s.tell("READY=1\nSTATUS=" + statusLine(g))
	var running sync.WaitGroup
	running.Go(func() { // ends with ctx, waited for by wait
		defer func() {
			s.tell(fmt.Sprintf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%d\nSTATUS=finishing calls", drain.Microseconds()))
		}()
		if s.socket == "" || s.beat <= 0 {
			<-ctx.Done()
			return
		}
		tick := time.NewTicker(s.beat)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.tell("WATCHDOG=1\nSTATUS=" + statusLine(g))
			}
		}
	})
	return running.Wait
}

// statusLine is what systemctl status shows.
func statusLine(g *federation.Gateway) string {
	if reasons := g.Ready(); len(reasons) > 0 {
		return "takes no calls: " + reasons[0]
	}
	return "serving " + g.PublicURL()
}
