package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gatehouse/federation/config"
	"gatehouse/federation/control"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong here, and the command that mends it",
		Long: "Looks at everything that a gateway depends on: configuration, state, permissions,\n" +
			"disk, clock, ledger, daemon, servers, credentials, tool names, issuer, callers. It\n" +
			"reaches out to each server with a handshake, asks the issuer to describe itself,\n" +
			"and changes nothing. Exit code 1: something is wrong.",
		Args: nothing,
		RunE: func(c *cobra.Command, _ []string) error { return a.doctor(c.Context()) },
	}
}

// The levels of a symptom.
const (
	wellLevel  = "ok"
	noteLevel  = "note"  // to know, nothing has to be done
	wrongLevel = "wrong" // something does not work, or is not safe
)

// A symptom is one thing that was looked at.
type symptom struct {
	Area  string `json:"area"`
	Level string `json:"level"`
	Text  string `json:"text"`
	Mend  string `json:"mend,omitempty"` // a line to paste, or what to do
}

// A doctor collects symptoms.
type doctor struct {
	*app
	cfg      *config.Config
	status   *control.Status // of the daemon; nil: none runs
	api      control.API     // nil: the state could not be opened
	symptoms []symptom
}

func (d *doctor) well(area, format string, args ...any) {
	d.symptoms = append(d.symptoms, symptom{Area: area, Level: wellLevel, Text: fmt.Sprintf(format, args...)})
}

func (d *doctor) note(area, mend, format string, args ...any) {
	d.symptoms = append(d.symptoms, symptom{area, noteLevel, fmt.Sprintf(format, args...), mend})
}

func (d *doctor) wrong(area, mend, format string, args ...any) {
	d.symptoms = append(d.symptoms, symptom{area, wrongLevel, fmt.Sprintf(format, args...), mend})
}

func (a *app) doctor(ctx context.Context) error {
	d := &doctor{app: a}
	d.examine(ctx)
	bad := 0
	for _, s := range d.symptoms {
		if s.Level == wrongLevel {
			bad++
		}
	}
	if a.json {
		if err := a.printJSON(d.symptoms); err != nil {
			return err
		}
	} else {
		a.printSymptoms(d.symptoms, bad)
	}
	if bad > 0 {
		return errSilent
	}
	return nil
}

// examine goes from what everything rests on to what rests on it.
func (d *doctor) examine(ctx context.Context) {
	if !d.configuration() {
		return
	}
	d.permissions()
	d.disk()
	d.ledger()
	done := d.daemon(ctx)
	defer done()
	d.secrets(ctx)
	d.servers(ctx)
	d.names(ctx)
	d.issuer(ctx)
	d.callers()
}

func (d *doctor) configuration() bool {
	const area = "configuration"
	path, err := d.file()
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		d.wrong(area, program()+" init", "%s", err)
		return false
	}
	cfg, problems := config.Load(path)
	for _, p := range problems {
		if p.Warning {
			d.note(area, "", "%s", p)
		} else {
			d.wrong(area, "edit "+editAt(path, p.Line), "%s", p)
		}
	}
	if cfg == nil {
		return false
	}
	for _, p := range cfg.CheckFiles() {
		d.wrong(area, "edit "+editAt(path, p.Line), "%s", p)
	}
	d.cfg = cfg
	d.well(area, "%s: %s, %s", filepath.Base(path), count(len(cfg.Callers), "caller"), count(len(cfg.Servers), "server"))
	return true
}

func editAt(path string, line int) string {
	if line > 0 {
		return fmt.Sprintf("%s, line %d", path, line)
	}
	return path
}

// daemon finds out whether one runs, and opens what the later checks look at.
func (d *doctor) daemon(ctx context.Context) func() {
	const area = "daemon"
	remote, err := control.Dial(ctx, d.cfg.SocketPath())
	if err == nil {
		d.api = remote
		d.running(ctx, remote)
		return remote.Close
	}
	if taken(d.cfg.Listen.Address) {
		d.wrong(area, "set another address under [listen] in "+d.cfg.Path, "it does not run, and another program listens on %s", d.cfg.Listen.Address)
	} else {
		d.note(area, d.command("serve"), "it does not run")
	}
	cfg, cleanUp := d.cfg, func() {}
	if _, err := os.Stat(cfg.StatePath()); err != nil {
		// To look must not make a state; servers can be reached without one.
		dir, err := os.MkdirTemp("", "gatehouse-doctor-")
		if err != nil {
			return cleanUp
		}
		scratch := *cfg
		scratch.State.Path = filepath.Join(dir, "gatehouse.db")
		cfg, cleanUp = &scratch, func() { _ = os.RemoveAll(dir) }
		d.note("state", d.command("import --all"), "there is none yet; the first import or start makes it")
	}
	api, done, err := d.connectTo(ctx, cfg)
	if err != nil {
		d.wrong("state", "", "%s", err)
		return cleanUp
	}
	d.api = api
	return func() { done(); cleanUp() }
}

// running looks at a daemon from inside and from outside.
func (d *doctor) running(ctx context.Context, api control.API) {
	const area = "daemon"
	status, err := api.Status(ctx)
	if err != nil {
		d.wrong(area, "", "%s", err)
		return
	}
	d.status = &status
	d.well(area, "process %d, version %s, since %s", status.PID, status.Version, ago(&status.Started))
	if status.Version != d.version {
		d.note(area, "", "this command is version %s; restart the daemon after an upgrade", d.version)
	}
	for _, reason := range status.NotReady {
		d.wrong(area, "", "it takes no calls: %s", reason)
	}
	if w := status.Waiting; w != nil && w.Plan == nil {
		d.wrong("configuration", d.command("check"), "the file is not in force, the one before is")
	} else if w != nil {
		d.note("configuration", d.command("reload"), "the file opens something and waits for you to agree")
	} else if status.Config != "" && !sameFile(status.Config, d.cfg.Path) {
		d.note("configuration", "", "the daemon was started with another file, %s", status.Config)
	}
	if n := status.Approvals; n > 0 {
		d.note("approvals", d.command("approvals"), "%s for a person", waits(n, "call"))
	}
}

func (a *app) printSymptoms(all []symptom, bad int) {
	colours := map[string]string{wellLevel: green, noteLevel: yellow, wrongLevel: red}
	notes := 0
	for _, s := range all {
		a.printf("%s  %s %s\n", a.paint(colours[s.Level], pad(s.Level, 5)), pad(s.Area, 13), wrap(escape(s.Text), 21))
		if s.Mend != "" && s.Level != wellLevel {
			// Not wrapped: it is to be pasted.
			a.printf("%s%s\n", strings.Repeat(" ", 21), a.paint(bold, escape(s.Mend)))
		}
		if s.Level == noteLevel {
			notes++
		}
	}
	switch {
	case bad == 0 && notes == 0:
		a.printf("\nnothing is wrong\n")
	case bad == 0:
		a.printf("\nnothing is wrong, %s\n", count(notes, "note"))
	default:
		a.printf("\n%s wrong, %s\n", are(bad), count(notes, "note"))
	}
}

func waits(n int, what string) string {
	if n == 1 {
		return "1 " + what + " waits"
	}
	return fmt.Sprintf("%d %ss wait", n, what)
}

func are(n int) string {
	if n == 1 {
		return "1 thing is"
	}
	return fmt.Sprintf("%d things are", n)
}
