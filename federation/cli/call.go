package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gatehouse/federation/config"
	"gatehouse/federation/control"
	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// maxArguments bounds what is read of --args -.
const maxArguments = 1 << 20

func (a *app) callCommand() *cobra.Command {
	var caller, arguments string
	c := &cobra.Command{
		Use:   "call NAME",
		Short: "Call a tool as one of the callers, through the same gate as any call",
		Long: `Call a tool as one of the callers, through the same gate as any call.

When the call needs approval, the person at the terminal is asked. Without a
terminal nobody can be asked, and the call is refused: there is no flag that
answers instead of a person. For unattended calls, set requires_approval = false
for the server, or let somebody decide with: gatehouse approvals approve`,
		Args: names(1, 1, "the name of a tool"),
		RunE: func(c *cobra.Command, args []string) error {
			raw, err := a.readArguments(arguments)
			if err != nil {
				return err
			}
			return a.call(c.Context(), args[0], caller, raw)
		},
	}
	c.Flags().StringVar(&caller, "caller", "", "`name` of the caller (default: the only one, or the only administrator)")
	c.Flags().StringVar(&arguments, "args", "{}", "arguments as a `JSON` object; - reads them from standard input")
	return c
}

// readArguments takes the arguments as they were typed; they are judged, shown
// and sent byte for byte.
func (a *app) readArguments(typed string) ([]byte, error) {
	raw := []byte(typed)
	if typed == "-" {
		var err error
		if raw, err = io.ReadAll(io.LimitReader(a.stdin, maxArguments+1)); err != nil {
			return nil, err
		}
		if len(raw) > maxArguments {
			return nil, usagef("--args: more than %d bytes", maxArguments)
		}
	}
	raw = bytes.TrimSpace(raw)
	if err := rawjson.Check(raw); err != nil {
		return nil, usagef("--args: not JSON that can be sent: %s", err)
	}
	if !rawjson.IsObject(raw) {
		return nil, usagef(`--args: want a JSON object, for example '{"message":"hello"}'`)
	}
	return raw, nil
}

func (a *app) call(ctx context.Context, tool, caller string, arguments []byte) error {
	cfg, err := a.load(false)
	if err != nil {
		return err
	}
	if caller == "" {
		if caller, err = onlyCaller(cfg); err != nil {
			return err
		}
	}
	api, done, err := a.connectTo(ctx, cfg)
	if err != nil {
		return err
	}
	defer done()
	ask, closeTerminal := a.asker()
	defer closeTerminal()
	reply, err := api.Call(ctx, control.CallRequest{Tool: tool, Caller: caller, Arguments: arguments}, ask, a.progress())
	if isTerminal(a.stderr) {
		fmt.Fprint(a.stderr, clearLine)
	}
	if err != nil {
		return err
	}
	err = a.printReply(tool, reply)
	if ask == nil && reply.Error != nil && reply.Error.Code == needsCapability {
		fmt.Fprintln(a.stderr, "hint: there is no terminal here to ask a person at; call from one, or set [approval] channel to one with a console")
	}
	return err
}

// onlyCaller is the caller that is meant when none is named.
func onlyCaller(cfg *config.Config) (string, error) {
	var all, admins []string
	for i := range cfg.Callers {
		all = append(all, string(cfg.Callers[i].Name))
		if cfg.Callers[i].Admin {
			admins = append(admins, string(cfg.Callers[i].Name))
		}
	}
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(admins) == 1:
		return admins[0], nil
	case len(all) == 0:
		return "", fmt.Errorf("the configuration has no [[caller]]")
	}
	return "", usagef("--caller is needed: one of %s", strings.Join(all, ", "))
}

// needsCapability is the error of MCP 2026-07-28 for a caller that cannot do
// what its request needs: here, be asked.
const needsCapability = -32021

// clearLine takes back the line that progress was shown on.
const clearLine = "\r\x1b[K"

// progress shows how far a tool is, on a terminal.
func (a *app) progress() func([]byte) {
	if !isTerminal(a.stderr) {
		return nil
	}
	return func(params []byte) {
		var p struct {
			Progress json.Number `json:"progress"`
			Total    json.Number `json:"total"`
			Message  string      `json:"message"`
		}
		if json.Unmarshal(params, &p) != nil {
			return
		}
		line := p.Progress.String()
		if p.Total != "" {
			line += " of " + p.Total.String()
		}
		fmt.Fprint(a.stderr, clearLine+shorten(oneLine(line+" "+p.Message), screen-1))
	}
}

func (a *app) printReply(tool string, reply control.CallReply) error {
	good := reply.Verdict == gate.OK
	if a.json {
		if err := a.printJSON(reply); err != nil {
			return err
		}
	} else if reply.Error != nil {
		fmt.Fprintf(a.stderr, "gatehouse: %s\n", escape(reply.Error.Message))
		return errSilent
	} else {
		out := a.stdout
		if !good {
			out = a.stderr
		}
		fmt.Fprintln(out, escape(resultText(reply.Result)))
		fmt.Fprintf(a.stderr, "%s: %s%s\n", tool, reply.Verdict, onRecord(reply.Record))
	}
	if !good {
		return errSilent
	}
	return nil
}

// onRecord names the entry to look up, if there is one.
func onRecord(number uint64) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprintf(" (record %d)", number)
}

// resultText is a tool's result for a person: its texts, a word for everything
// else, and the structured result when there is no text.
func resultText(raw []byte) string {
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
			MIME string `json:"mimeType"`
			Data string `json:"data"`
			URI  string `json:"uri"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return string(raw)
	}
	var parts []string
	for _, c := range result.Content {
		switch {
		case c.Type == "text":
			parts = append(parts, c.Text)
		case c.URI != "":
			parts = append(parts, fmt.Sprintf("[%s %s]", c.Type, c.URI))
		default:
			parts = append(parts, fmt.Sprintf("[%s %s, %d characters; --json shows it]", c.Type, c.MIME, len(c.Data)))
		}
	}
	if len(parts) == 0 && len(result.Structured) > 0 {
		parts = append(parts, pretty(result.Structured))
	}
	return strings.Join(parts, "\n")
}

// pretty indents JSON without decoding its values.
func pretty(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
