package cli

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"gatehouse/federation/plan"
)

// A keyboard is a terminal at which somebody types.
type keyboard struct {
	io.Reader
	shown bytes.Buffer
}

func (k *keyboard) Write(b []byte) (int, error)   { return k.shown.Write(b) }
func (*keyboard) Close() error                    { return nil }
func (*keyboard) SetReadDeadline(time.Time) error { return nil }

// TestAgreed is the table of who agrees to a plan and how.
func TestAgreed(t *testing.T) {
	some := &plan.Plan{Settings: []plan.Setting{{Subject: "gate", Key: "data_class_enforcement", Before: "enforce", After: "observe"}}}
	for _, test := range []struct {
		name  string
		plan  *plan.Plan
		yes   bool
		typed string // "-": there is no terminal
		json  bool
		ok    bool
	}{
		{"typed", some, false, "yes\n", false, true},
		{"typed, for a script", some, false, "yes\n", true, true},
		{"a letter", some, false, "y\n", false, false},
		{"an empty line", some, false, "\n", false, false},
		{"nothing at all", some, false, "", false, false},
		{"no", some, false, "no\nyes\n", false, false},
		{"nobody there", some, false, "-", false, false},
		{"nobody there, agreed before", some, true, "-", false, true},
		{"nothing to agree to", &plan.Plan{Effect: plan.Neutral}, false, "-", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			k := &keyboard{Reader: strings.NewReader(test.typed)}
			a := &app{stdout: &out, stderr: io.Discard, json: test.json, terminal: func() (terminal, error) {
				if test.typed == "-" {
					return nil, errors.New("no terminal")
				}
				return k, nil
			}}
			if err := a.agreed(test.plan, test.yes); (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
			if test.json && (out.Len() > 0 || !strings.Contains(k.shown.String(), "observe")) {
				t.Errorf("the plan is not shown where the person is: %q, %q", out.String(), k.shown.String())
			}
			if !test.json && !strings.Contains(out.String(), "->") {
				t.Errorf("the plan is not shown: %q", out.String())
			}
		})
	}
}
