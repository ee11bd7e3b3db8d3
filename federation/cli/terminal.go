package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"gatehouse/federation/control"
)

// A terminal is where a person can be asked. Deadlines make a question that
// nobody answers end.
type terminal interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
}

// openTerminal opens the terminal this process belongs to, whatever standard
// input is: an answer that can be piped in is no person's answer.
func openTerminal() (terminal, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// asker returns what asks the person at the terminal, or nil when there is
// none. Close gives the terminal up.
func (a *app) asker() (ask control.Asker, closeTerminal func()) {
	t, err := a.terminal()
	if err != nil {
		return nil, func() {}
	}
	in := bufio.NewReader(io.LimitReader(t, 64<<10))
	return func(ctx context.Context, q control.Question) control.Answer {
		_ = t.SetReadDeadline(q.Until) // zero: none; a terminal without deadlines is ended with the process
		stop := context.AfterFunc(ctx, func() { _ = t.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
		fmt.Fprintf(t, "\n%s\n\n", escape(strings.TrimRight(q.Message, "\n")))
		return readAnswer(t, in)
	}, func() { t.Close() }
}

// readAnswer wants a word in full. There is no default: an empty line is asked
// about again, a lost terminal is no answer.
func readAnswer(w io.Writer, in *bufio.Reader) control.Answer {
	for range 3 {
		fmt.Fprint(w, "Type \"approve\" or \"deny\": ")
		line, err := in.ReadString('\n')
		switch strings.TrimSpace(line) {
		case "approve":
			return control.Approve
		case "deny":
			return control.Deny
		}
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				fmt.Fprintln(w, "\nno answer in time")
			}
			return control.Unanswered
		}
	}
	return control.Unanswered
}
