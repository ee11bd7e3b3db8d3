package scenarios

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/e2e/client"
)

const order = `{"order":"9007199254740993"}`

func TestApprovalAccepted(t *testing.T) {
	w := newWorld(t, "")
	eachKind(t, func(t *testing.T, k client.Kind) {
		c := w.open(t, k, "alice", client.Accept)
		last, ran := w.Last(t), w.desk.Ran(t, "ship")
		r := c.Call(t, "mcp_orders_ship", order)
		if !r.OK() || r.Outcome() != "ok" || r.Text() != order {
			t.Fatalf("ship: %s", r)
		}
		if n := w.desk.Ran(t, "ship") - ran; n != 1 {
			t.Errorf("ship ran %d times", n)
		}
		if len(r.Questions) != 1 {
			t.Fatalf("asked %d times", len(r.Questions))
		}
		for _, want := range []string{"ship", "The orders server", "127.0.0.1", "public_content", "alice", "9007199254740993"} {
			if !strings.Contains(r.Questions[0].Message, want) {
				t.Errorf("the question does not say %q:\n%s", want, r.Questions[0].Message)
			}
		}
		var schema struct {
			Required   []string
			Properties map[string]struct{ Default any }
		}
		if err := json.Unmarshal(r.Questions[0].RequestedSchema, &schema); err != nil {
			t.Fatal(err)
		}
		if len(schema.Required) != 1 || schema.Required[0] != "decision" || schema.Properties["decision"].Default != nil {
			t.Errorf("the form is %s; want one required choice without a default", r.Questions[0].RequestedSchema)
		}
		entries := w.Since(t, last, "outcome")
		intents, outcomes := only(entries, "intent"), only(entries, "outcome")
		if len(intents) != 1 || intents[0].Approval == 0 || len(outcomes) != 1 || outcomes[0].Verdict != "ok" || outcomes[0].Intent != intents[0].Number {
			t.Errorf("the ledger says %+v", entries)
		}
		if questions := only(entries, "question"); len(questions) != 1 || questions[0].Number != intents[0].Approval {
			t.Errorf("the questions on record are %+v, the intent's approval is %d", questions, intents[0].Approval)
		}

		// Nothing is remembered: the same call asks again.
		if r := c.Call(t, "mcp_orders_ship", order); !r.OK() || len(r.Questions) != 1 {
			t.Errorf("the second call: %s; asked %d times", r, len(r.Questions))
		}
	})
}

func TestApprovalNotGiven(t *testing.T) {
	w := newWorld(t, "")
	eachKind(t, func(t *testing.T, k client.Kind) {
		for answer, reason := range map[client.Answer]string{client.Deny: "denied", client.Decline: "declined", client.Cancel: "cancelled"} {
			t.Run(string(answer), func(t *testing.T) {
				c := w.open(t, k, "alice", answer)
				last, ran := w.Last(t), w.desk.Ran(t, "ship")
				r := c.Call(t, "mcp_orders_ship", order)
				if r.OK() || len(r.Questions) != 1 {
					t.Errorf("ship: %s; asked %d times", r, len(r.Questions))
				}
				wantAnswer(t, w.Since(t, last, "answer"), reason)
				if n := w.desk.Ran(t, "ship") - ran; n != 0 {
					t.Errorf("ship ran %d times", n)
				}
			})
		}
	})
}

func TestApprovalTooLate(t *testing.T) {
	w := newWorld(t, "2s")
	eachKind(t, func(t *testing.T, k client.Kind) {
		c := k.Open(t, client.Options{URL: w.URL, Token: w.Token(t, "alice"), Answer: client.Late, LateBy: 4 * time.Second})
		last, ran := w.Last(t), w.desk.Ran(t, "ship")
		r := c.Call(t, "mcp_orders_ship", order)
		if r.OK() || len(r.Questions) != 1 {
			t.Errorf("ship: %s; asked %d times", r, len(r.Questions))
		}
		if k.Name == "typescript-2025" { // the call is over before the answer comes
			wantAnswer(t, w.Since(t, last, "answer"), "approval_expired")
		} else {
			wantDenied(t, w.Since(t, last, "denied"), "declined", "approval_expired")
		}
		if n := w.desk.Ran(t, "ship") - ran; n != 0 {
			t.Errorf("ship ran %d times", n)
		}
	})
}

// In the 2025 era the call waits for the answer, so its end is the gateway's
// doing; in the 2026 era nobody waits, and a question without an answer must
// simply never become a call.
func TestApprovalNeverAnswered(t *testing.T) {
	w := newWorld(t, "2s")
	eachKind(t, func(t *testing.T, k client.Kind) {
		c := k.Open(t, client.Options{URL: w.URL, Token: w.Token(t, "alice"), Answer: client.Silent, Timeout: 8 * time.Second})
		last := w.Last(t)
		r := c.Call(t, "mcp_orders_ship", order)
		if r.OK() || len(r.Questions) != 1 {
			t.Errorf("ship: %s; asked %d times", r, len(r.Questions))
		}
		if k.Name == "typescript-2025" {
			if r.Took < 1900*time.Millisecond || r.Took > 6*time.Second || r.Result == nil || !r.Result.IsError {
				t.Errorf("want a refusal after 2s: %s", r)
			}
			wantAnswer(t, w.Since(t, last, "answer"), "approval_expired")
		}
		for _, e := range w.Since(t, last, "question") {
			if e.Kind == "intent" {
				t.Errorf("an unanswered question became the intent %+v", e)
			}
		}
		if ran := w.desk.Ran(t, "ship"); ran != 0 {
			t.Errorf("ship ran %d times", ran)
		}
	})
}

func TestClientWithoutElicitation(t *testing.T) {
	w := newWorld(t, "")
	eachKind(t, func(t *testing.T, k client.Kind) {
		c := w.open(t, k, "alice", client.None)
		last := w.Last(t)
		r := c.Call(t, "mcp_orders_ship", order)
		switch k.Name {
		case "typescript-2025":
			if r.Result == nil || !r.Result.IsError || !strings.Contains(r.Text(), "elicitation") {
				t.Errorf("want a result that says what to do: %s", r)
			}
		case "go-2026":
			var data struct {
				RequiredCapabilities struct {
					Elicitation json.RawMessage `json:"elicitation"`
				} `json:"requiredCapabilities"`
			}
			if r.Error == nil || r.Error.Code != -32021 || json.Unmarshal(r.Error.Data, &data) != nil || data.RequiredCapabilities.Elicitation == nil {
				t.Errorf("want -32021 with the capability that is missing: %s", r)
			}
		}
		wantDenied(t, w.Since(t, last, "denied"), "refused", "approval_required")
		if ran := w.desk.Ran(t, "ship"); ran != 0 {
			t.Errorf("ship ran %d times", ran)
		}
	})
}
