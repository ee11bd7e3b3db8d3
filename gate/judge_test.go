package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
)

var (
	classes = []gate.Class{gate.Unclassified, gate.PublicContent, gate.EditorContent, gate.SourceCode,
		gate.InternalConfiguration, gate.SystemDiagnostics, gate.SecretAdjacent, gate.SecretAdjacent + 1}
	zones        = []gate.Zone{gate.ExternalGlobal, gate.ExternalEU, gate.PrivateHosted, gate.Local, gate.Local + 1}
	availability = []gate.Availability{gate.Disabled, gate.Enabled, gate.Changed, gate.Vanished, gate.Skipped,
		gate.ServerDisabled, gate.Unsupplied, gate.Unsupplied + 1}
)

// A rule is one line of policy.
type rule struct {
	name   string
	tool   *gate.Tool
	caller *gate.Caller
	call   gate.Call
	mode   gate.Enforcement
	want   gate.Reason
}

func allow(name string, t *gate.Tool, c *gate.Caller) rule {
	return rule{name: name, tool: t, caller: c}
}

func deny(name string, t *gate.Tool, c *gate.Caller, why gate.Reason) rule {
	return rule{name: name, tool: t, caller: c, want: why}
}

func (r rule) observed() rule { r.mode = gate.Observe; return r }

func (r rule) with(arguments string) rule { r.call.Arguments = []byte(arguments); return r }

func tool(change ...func(*gate.Tool)) *gate.Tool {
	t := gatetest.Tool("mcp_demo_echo")
	for _, f := range change {
		f(t)
	}
	return t
}

func caller(change ...func(*gate.Caller)) *gate.Caller {
	c := gatetest.Admin("alice")
	for _, f := range change {
		f(c)
	}
	return c
}

func own(t *gate.Tool)                        { t.Own, t.Group, t.Server, t.Origin = true, "", "", "" }
func class(c gate.Class) func(*gate.Tool)     { return func(t *gate.Tool) { t.Class = c } }
func is(a gate.Availability) func(*gate.Tool) { return func(t *gate.Tool) { t.Availability = a } }
func noAdmin(c *gate.Caller)                  { c.Admin = false }
func zone(z gate.Zone) func(*gate.Caller)     { return func(c *gate.Caller) { c.Zone = z } }
func groups(names ...string) func(*gate.Caller) {
	return func(c *gate.Caller) { c.Groups = gate.OnlyGroups(names...) }
}
func portable(c *gate.Caller) { c.Dialect = gate.Portable }
func unportable(t *gate.Tool) { t.Unportable = "it uses oneOf at the root" }
func budget(prefix, size int) func(*gate.Caller) {
	return func(c *gate.Caller) { c.NamePrefix, c.NameBudget = prefix, size }
}
func noArguments(t *gate.Tool) { t.Arguments = nil }

func TestPolicy(t *testing.T) {
	for _, r := range []rule{
		allow("an administrator, an enabled tool", tool(), caller()),
		deny("no such tool", nil, caller(), gate.NotRegistered),
		deny("no caller", tool(), nil, gate.RequiresAdmin),
		deny("the zero caller", tool(), &gate.Caller{}, gate.RequiresAdmin),
		deny("the zero tool", &gate.Tool{}, caller(), gate.ToolDisabled),
		deny("nobody enabled it", tool(is(gate.Disabled)), caller(), gate.ToolDisabled),
		deny("it changed", tool(is(gate.Changed)), caller(), gate.ToolDisabled),
		deny("not an administrator", tool(), caller(noAdmin), gate.RequiresAdmin),
		allow("our own tool needs none", tool(own), caller(noAdmin)),
		deny("another group", tool(), caller(groups("mcp_other")), gate.ConfigurationGroup),
		deny("no group at all", tool(), caller(groups()), gate.ConfigurationGroup),
		deny("forgotten groups", tool(), caller(func(c *gate.Caller) { c.Groups = gate.Groups{} }), gate.ConfigurationGroup),
		allow("its group", tool(), caller(groups("mcp_demo"))),
		allow("our own tool is in no group", tool(own), caller(groups())),
		deny("no class", tool(class(gate.Unclassified)), caller(), gate.TrustZone),
		deny("above the ceiling", tool(class(gate.SourceCode)), caller(zone(gate.ExternalGlobal)), gate.TrustZone),
		deny("observing loosens no remote tool", tool(class(gate.SourceCode)), caller(zone(gate.ExternalGlobal)), gate.TrustZone).observed(),
		deny("our own tool above the ceiling", tool(own, class(gate.SourceCode)), caller(zone(gate.ExternalGlobal)), gate.TrustZone),
		allow("our own tool, observed", tool(own, class(gate.SourceCode)), caller(zone(gate.ExternalGlobal))).observed(),
		deny("our own tool without a class, observed", tool(own, class(gate.Unclassified)), caller(), gate.TrustZone).observed(),
		deny("observing enables nothing", tool(own, is(gate.Disabled)), caller(), gate.ToolDisabled).observed(),
		deny("the dialect cannot carry it", tool(unportable), caller(portable), gate.NotPortable),
		allow("the full dialect can", tool(unportable), caller()),
		deny("the name is too long there", tool(), caller(budget(10, 22)), gate.NotPortable),
		allow("the name just fits", tool(), caller(budget(10, 23))),
		allow("an object", tool(), caller()).with(`{"a":1}`),
		deny("an array", tool(), caller(), gate.InvalidArguments).with(`[1]`),
		deny("one key twice", tool(), caller(), gate.InvalidArguments).with(`{"a":{"b":1,"b":2}}`),
		deny("not JSON", tool(), caller(), gate.InvalidArguments).with(`{"a":`),
		deny("two values", tool(), caller(), gate.InvalidArguments).with(`{} {}`),
		deny("empty bytes", tool(), caller(), gate.InvalidArguments).with(``),
		allow("none, for a tool that takes none", tool(noArguments), caller()),
		allow("an empty object too", tool(noArguments), caller()).with(" { \n } "),
		deny("some, for a tool that takes none", tool(noArguments), caller(), gate.InvalidArguments).with(`{"a":1}`),
		deny("hidden arguments do not show in a refusal for less", tool(is(gate.Disabled)), caller(), gate.ToolDisabled).with(`[1]`),
	} {
		t.Run(r.name, func(t *testing.T) {
			s := gatetest.NewSnapshot()
			if r.call.Tool = "mcp_demo_echo"; r.tool != nil {
				s[r.call.Tool] = r.tool
			}
			d := gate.Judge(s, r.caller, r.call, r.mode)
			if d.Reason != r.want {
				t.Errorf("got %q (%s), want %q", d.Reason, d.Detail, r.want)
			}
			if (d.Argument != nil) != (r.want == gate.InvalidArguments) {
				t.Errorf("argument error %v with reason %q", d.Argument, d.Reason)
			}
		})
	}
}

// expected states the policy of checks 1 to 5 a second time, from the table of
// zones alone.
func expected(t *gate.Tool, c *gate.Caller, mode gate.Enforcement) gate.Reason {
	ceiling := map[gate.Zone]gate.Class{gate.Local: 6, gate.PrivateHosted: 5, gate.ExternalEU: 4, gate.ExternalGlobal: 2}[c.Zone]
	switch {
	case t.Availability != gate.Enabled:
		return gate.ToolDisabled
	case !t.Own && !c.Admin:
		return gate.RequiresAdmin
	case !c.Groups.Every() && !c.Groups.Include(t.Group):
		return gate.ConfigurationGroup
	case t.Class == 0 || t.Class > 6 || ceiling == 0 && !(t.Own && mode == gate.Observe):
		return gate.TrustZone
	case t.Class > ceiling && !(t.Own && mode == gate.Observe):
		return gate.TrustZone
	}
	return ""
}

func TestPolicyExhaustively(t *testing.T) {
	narrowings := []gate.Groups{{}, gate.EveryGroup(), gate.OnlyGroups(), gate.OnlyGroups("mcp_demo"), gate.OnlyGroups("mcp_other")}
	seen := map[gate.Reason]int{}
	for _, class := range classes {
		for _, zone := range zones {
			for _, available := range availability {
				for i, narrowing := range narrowings {
					for bits := range 8 {
						admin, isOwn, mode := bits&1 != 0, bits&2 != 0, gate.Enforcement(bits>>2)
						tool := gatetest.Tool("mcp_demo_echo")
						tool.Class, tool.Availability, tool.Own = class, available, isOwn
						c := &gate.Caller{Name: "alice", Admin: admin, Zone: zone, Groups: narrowing}
						want := expected(tool, c, mode)
						got, detail := gate.Offered(tool, c, mode)
						seen[got]++
						if got != want || (got != "") != (detail != "") {
							t.Fatalf("class %v, zone %v, %v, groups %d, admin %v, own %v, mode %v: got %q (%s), want %q",
								class, zone, available, i, admin, isOwn, mode, got, detail, want)
						}
						agree(t, tool, c, mode)
					}
				}
			}
		}
	}
	for _, reason := range []gate.Reason{"", gate.ToolDisabled, gate.RequiresAdmin, gate.ConfigurationGroup, gate.TrustZone} {
		if seen[reason] == 0 {
			t.Errorf("no case is decided by %q", reason)
		}
	}
}

// agree holds listing, calling and explaining to one answer.
func agree(t *testing.T, tool *gate.Tool, c *gate.Caller, mode gate.Enforcement) {
	t.Helper()
	s := gatetest.NewSnapshot(tool)
	call := gate.Call{Tool: tool.Name, Arguments: []byte(`{}`)}
	listed, _ := gate.Offered(tool, c, mode)
	called := gate.Judge(s, c, call, mode).Reason
	explained := gate.Reason("")
	checks := gate.Explain(s, c, call, mode)
	for i, check := range checks {
		if check.Number != i+1 || check.Detail == "" {
			t.Fatalf("check %d is %+v", i+1, check)
		}
		if explained == "" && !check.Passed && !check.Skipped {
			explained = check.Reason
		}
	}
	if listed != called || called != explained || len(checks) != 9 {
		t.Fatalf("listed %q, called %q, explained %q in %d checks", listed, called, explained, len(checks))
	}
}

func TestExplainSaysWhatItCannotCheck(t *testing.T) {
	for _, check := range gate.Explain(gatetest.NewSnapshot(), caller(), gate.Call{Tool: "mcp_demo_gone"}, gate.Enforce)[1:] {
		if !check.Skipped || check.Passed {
			t.Errorf("without a tool, check %d is %+v", check.Number, check)
		}
	}
	asked := tool(func(t *gate.Tool) { t.ApprovalWaived = false })
	checks := gate.Explain(gatetest.NewSnapshot(asked), caller(), gate.Call{Tool: asked.Name}, gate.Enforce)
	if c := checks[6]; !c.Skipped {
		t.Errorf("without arguments, check 7 is %+v", c)
	}
	if c := checks[8]; c.Passed || !c.Skipped || !strings.Contains(c.Detail, "asked at every call") {
		t.Errorf("check 9 is %+v", c)
	}
}

func FuzzClassText(f *testing.F) {
	for _, name := range append(gate.ClassNames(), "", "unclassified", "Public_content", "secret_adjacent ") {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c gate.Class
		err := c.UnmarshalText([]byte(text))
		if err != nil && c != gate.Unclassified {
			t.Fatalf("%q is refused and still sets %v", text, c)
		}
		if err == nil && (c.String() != text || c == gate.Unclassified) {
			t.Fatalf("%q is read as %v", text, c)
		}
	})
}

func ExampleExplain() {
	s := gatetest.NewSnapshot(gatetest.Tool("mcp_demo_echo"))
	visitor := &gate.Caller{Name: "eve", Groups: gate.EveryGroup()}
	for _, check := range gate.Explain(s, visitor, gate.Call{Tool: "mcp_demo_echo"}, gate.Enforce)[:3] {
		fmt.Println(check.Number, check.Name, check.Passed, check.Detail)
	}
	// Output:
	// 1 registered true "echo" of server "demo"
	// 2 enabled true enabled
	// 3 administrator false caller is not an administrator
}
