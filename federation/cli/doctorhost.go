package cli

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// What the disk has to have left, and should have.
const (
	leastDisk = 64 << 20
	easyDisk  = 1 << 30
)

// clockSlack is how far the ledger may be ahead of the clock: clocks are set by
// small steps all the time.
const clockSlack = time.Minute

// permissions looks at who else can get at our files.
func (d *doctor) permissions() {
	const area = "permissions"
	good := true
	check := func(path string, forbidden fs.FileMode, mode, harm string) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&forbidden == 0 {
			return
		}
		good = false
		d.wrong(area, "chmod "+mode+" "+shellQuote(path), "%s %s (mode %04o)", filepath.Base(path), harm, info.Mode().Perm())
	}
	check(d.cfg.Path, 0o022, "go-w", "can be written by others, who decide then what is allowed")
	check(d.cfg.StatePath(), 0o077, "600", "is open to others")
	check(d.cfg.SocketPath(), 0o077, "600", "is open to others, who can do what you can")
	check(d.cfg.LedgerDir(), 0o022, "go-w", "can be written by others")
	check(d.cfg.Listen.KeyFile, 0o077, "600", "is open to others")
	if err := writable(filepath.Dir(d.cfg.StatePath())); err != nil {
		good = false
		d.wrong(area, "", "the directory of the state cannot be written: %s", err)
	}
	if good {
		d.well(area, "files are where they can be written, and others cannot")
	}
}

// writable tries to write into a directory.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".gatehouse-doctor-")
	if err != nil {
		return errors.Unwrap(err) // the path is ours and is named beside it
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (d *doctor) disk() {
	const area = "disk"
	dir := filepath.Dir(d.cfg.StatePath())
	free, err := freeSpace(dir)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		d.note(area, "", "how much is free could not be told: %s", err)
	case free < leastDisk:
		d.wrong(area, "free some of it, or set [audit] retention", "%d MiB are left where the ledger is; when it is full no call is let through", free>>20)
	case free < easyDisk:
		d.note(area, "", "%d MiB are left where the ledger is", free>>20)
	default:
		d.well(area, "%d GiB are free where the ledger is", free>>30)
	}
}

// ledger verifies the chain, and holds the clock against its last entry.
func (d *doctor) ledger() {
	const area = "ledger"
	dir := d.cfg.LedgerDir()
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		d.well("clock", "%s", time.Now().Format("2006-01-02 15:04:05 MST"))
		return
	}
	report, err := ledger.Verify(dir)
	switch {
	case err != nil:
		d.wrong(area, "", "it cannot be read: %s", err)
		return
	case report.Bad != nil:
		d.wrong(area, d.command("audit verify"), "the chain is broken: %s", report.Bad)
	case report.Torn != nil:
		d.note(area, "", "%s, the chain is whole; %s", entries(report.Entries), report.Torn)
	default:
		d.well(area, "%s, the chain is whole", entries(report.Entries))
	}
	var last time.Time
	err = ledger.Tail(context.Background(), dir, 1, false, func(_ []byte, e gate.Entry) error {
		last = e.Time
		return nil
	})
	if ahead := time.Until(last); err == nil && ahead > clockSlack {
		d.wrong("clock", "timedatectl set-ntp true", "it is %s behind the last entry of the ledger; budgets and the order of the record depend on it", ahead.Round(time.Second))
		return
	}
	d.well("clock", "%s, after the last entry of the ledger", time.Now().Format("2006-01-02 15:04:05 MST"))
}

// taken reports whether somebody listens on an address.
func taken(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return true
	}
	return l.Close() != nil
}
