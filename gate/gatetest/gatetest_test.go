package gatetest

import (
	"testing"
)

func TestMemoryLedger(t *testing.T) {
	TestLedger(t, func(t *testing.T) Store {
		l := &Ledger{}
		return Store{l, l.Entries}
	})
}

func TestPermitIsGood(t *testing.T) {
	p := Permit(t, Tool("mcp_demo_echo"), nil, `{"a":1}`)
	order, err := p.Spend()
	if err != nil || string(order.Arguments) != `{"a":1}` || order.Tool.Remote != "echo" || order.Record == 0 {
		t.Errorf("got %+v, %v", order, err)
	}
}

func TestKeysDiffer(t *testing.T) {
	a, b := NewKeys(1), NewKeys(2)
	_, first := a.Current()
	_, other := b.Current()
	a.Rotate()
	_, second := a.Current()
	if first == other || first == second {
		t.Error("two keys are the same")
	}
}
