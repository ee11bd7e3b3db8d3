package gatetest

import (
	"context"
	"testing"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// AnyObject accepts every JSON object without duplicate keys as arguments.
type AnyObject struct{}

// Check implements gate.ArgumentChecker.
func (AnyObject) Check(raw []byte) error {
	if err := rawjson.Check(raw); err != nil {
		return &gate.ArgumentError{Rule: err.Error()}
	}
	if !rawjson.IsObject(raw) {
		return &gate.ArgumentError{Rule: "an object is wanted"}
	}
	return nil
}

// Digest is the RFC 8785 digest of a JSON value.
func Digest(raw []byte) (gate.Digest, error) {
	b, err := rawjson.Canonical(nil, raw)
	if err != nil {
		return gate.Digest{}, err
	}
	return gate.DigestOf(b), nil
}

// Tool returns an enabled tool that takes any arguments and needs no approval:
// name is its own, server's id and remote name are "demo" and "echo".
func Tool(name gate.LocalName) *gate.Tool {
	return &gate.Tool{
		Name: name, Server: "demo", ServerName: "Demo server", Origin: "https://demo.example.org",
		Remote: "echo", Group: "mcp_demo", Definition: gate.DigestOf([]byte(name)),
		Availability: gate.Enabled, Class: gate.PublicContent, ApprovalWaived: true, Arguments: AnyObject{},
	}
}

// Admin returns an administrator whose model runs here and who has no limits.
func Admin(name gate.CallerName) *gate.Caller {
	return &gate.Caller{Name: name, Admin: true, Zone: gate.Local, Groups: gate.EveryGroup(), AuthenticatedBy: "token"}
}

// NewGate returns a gate over a ledger in memory.
func NewGate(t testing.TB, l gate.Ledger) *gate.Gate {
	t.Helper()
	g, err := gate.New(gate.Options{Ledger: l, Keys: NewKeys(1), Digest: Digest})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// Permit returns a good permit for one call of tool, issued by a gate of its own.
// A tool that is not enabled, or needs approval, gets one all the same.
func Permit(t testing.TB, tool *gate.Tool, caller *gate.Caller, arguments string) *gate.Permit {
	t.Helper()
	willing := *tool
	willing.Availability, willing.ApprovalWaived, willing.Arguments = gate.Enabled, true, AnyObject{}
	if willing.Class == gate.Unclassified {
		willing.Class = gate.PublicContent
	}
	if caller == nil {
		caller = Admin("alice")
	}
	var raw []byte
	if arguments != "" {
		raw = []byte(arguments)
	}
	ruling := NewGate(t, &Ledger{}).Submit(context.Background(), NewSnapshot(&willing), caller,
		gate.Call{Tool: willing.Name, Arguments: raw})
	if ruling.Permit == nil {
		t.Fatalf("no permit for %s: %+v", tool.Name, ruling.Refusal)
	}
	return ruling.Permit
}
