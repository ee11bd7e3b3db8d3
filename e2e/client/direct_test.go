package client_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/e2e/client"
	"gatehouse/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// The clients talk to the servers without a gateway between them, so that a
// failure of the other tests can be put at the right door.

func TestTypeScriptDirect(t *testing.T) {
	url := rig.Everything(t)
	c := client.TypeScript(t, client.Options{URL: url, Answer: client.Decline})
	if names := client.Names(c.List(t)); !slices.Contains(names, "echo") || !slices.Contains(names, "trigger-elicitation-request") {
		t.Errorf("server-everything offers %q", names)
	}
	if r := c.Call(t, "echo", `{"message":"9007199254740993"}`); !r.OK() || !strings.Contains(r.Text(), "9007199254740993") {
		t.Errorf("echo: %s", r)
	}
	r := c.Call(t, "trigger-elicitation-request", `{}`)
	if !r.OK() || len(r.Questions) != 1 || !strings.Contains(r.Text(), "decline") {
		t.Errorf("elicitation: %s; asked %d times", r, len(r.Questions))
	}
	r = c.Call(t, "trigger-long-running-operation", `{"duration":0.3,"steps":3}`, client.WithProgress)
	if !r.OK() || len(r.Progress) == 0 {
		t.Errorf("long operation: %s; %d notifications", r, len(r.Progress))
	}

	silent := client.TypeScript(t, client.Options{URL: url, Answer: client.None})
	if names := client.Names(silent.List(t)); slices.Contains(names, "trigger-elicitation-request") {
		t.Error("a client without elicitation is offered the tool that needs it")
	}
}

func TestTypeScriptKeepsBytes(t *testing.T) {
	desk := rig.Orders(t)
	checkBytes(t, client.TypeScript(t, client.Options{URL: desk.URL, Answer: client.None}))
}

func TestGoDirect(t *testing.T) {
	desk := rig.Orders(t)
	c := client.Go(t, client.Options{URL: desk.URL, Answer: client.None})
	checkBytes(t, c)
	if r := c.Call(t, "fail", `{}`); r.OK() || r.Result == nil || !strings.Contains(r.Text(), "on fire") {
		t.Errorf("fail: %s", r)
	}
	r := c.Call(t, "slow", `{"steps":3,"pause_ms":20}`, client.WithProgress)
	if !r.OK() || len(r.Progress) != 3 {
		t.Errorf("slow: %s; %d notifications", r, len(r.Progress))
	}
	if ran := desk.Ran(t, "slow"); ran != 1 {
		t.Errorf("slow ran %d times", ran)
	}
	if r := c.Call(t, "slow", `{"steps":300,"pause_ms":20}`, client.CancelAfter(300*time.Millisecond)); r.OK() {
		t.Errorf("slow, given up: %s", r)
	}
	<-desk.Started("slow cut off")
	if cut := desk.Ran(t, "slow cut off"); cut != 1 {
		t.Errorf("the desk was cut off %d times", cut)
	}
	before := c.List(t)
	desk.Revise(t)
	if after := c.List(t); len(before) != len(after) || client.Names(before)[4] != "ship" || before[4].Description == after[4].Description {
		t.Errorf("the revised desk offers %q", client.Names(after))
	}
}

func checkBytes(t *testing.T, c client.Client) {
	t.Helper()
	arguments := `{"order":9007199254740993,"rate":1.10}`
	if r := c.Call(t, "echo", arguments); r.Text() != arguments {
		t.Errorf("echo: %s", r)
	}
	if r := c.Call(t, "big_numbers", `{}`); !r.OnWire(`"structuredContent":{"order":9007199254740993,"serial":123456789012345678901234567890,"rate":1.10,"tiny":1E-7}`) {
		t.Errorf("big_numbers: %q", r.Wire)
	}
	if r := c.Call(t, "hologram", `{}`); !r.OnWire(`{"type":"hologram","frames":[9007199254740993],"lens":{"f":1.40}}`) {
		t.Errorf("hologram: %q", r.Wire)
	}
}

// In the 2026 era the question comes as a result and the answer as a second
// call. That server insists: it asks again for as long as it is turned down.
func TestGoAnswersInputRequired(t *testing.T) {
	url := rig.Conformance(t, true)
	for _, answer := range []client.Answer{client.Decline, client.Cancel} {
		c := client.Go(t, client.Options{URL: url, Answer: answer})
		r := c.Call(t, "test_input_required_result_elicitation", `{}`)
		if r.OK() || len(r.Questions) < 2 || !r.OnWire("input_required") {
			t.Errorf("%s: %s; asked %d times", answer, r, len(r.Questions))
		}
	}
	c := client.Go(t, client.Options{URL: url, Answer: client.None})
	if r := c.Call(t, "test_input_required_result_elicitation", `{}`); r.OK() || len(r.Questions) != 0 {
		t.Errorf("without elicitation: %s", r)
	}
}
