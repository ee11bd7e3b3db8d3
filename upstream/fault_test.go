package upstream

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// TestWhatAnErrorMeans goes through every kind of error, and through the
// statuses that are about more than the request.
func TestWhatAnErrorMeans(t *testing.T) {
	for _, test := range []struct {
		kind         wire.Kind
		status       int
		reason       string
		inconclusive bool // it says nothing about the era
		doubtful     bool // it may come from speaking the wrong one
		passing      bool // it may pass by itself
		notRun       bool // it proves that no tool was run
	}{
		{kind: wire.HostRefused, reason: "host_refused", inconclusive: true},
		{kind: wire.Transport, reason: "transport", inconclusive: true, passing: true},
		{kind: wire.Redirect, status: 307, reason: "redirect", inconclusive: true},
		{kind: wire.Deadline, reason: "transport", inconclusive: true},
		{kind: wire.Cancelled, reason: "transport", inconclusive: true},
		{kind: wire.RPCError, status: 200, reason: "server_error", doubtful: true, notRun: true},
		{kind: wire.RPCError, status: 503, reason: "server_error", inconclusive: true, passing: true, notRun: true},
		{kind: wire.Malformed, status: 200, reason: "malformed_reply", doubtful: true},
		{kind: wire.ContentType, status: 200, reason: "content_type", doubtful: true},
		{kind: wire.InputRequired, status: 200, reason: "input_required", doubtful: true},
		{kind: wire.TooLarge, status: 200, reason: "reply_too_large"},
		{kind: wire.HTTPStatus, status: 400, reason: "http_status", doubtful: true, notRun: true},
		{kind: wire.HTTPStatus, status: 401, reason: "http_status", inconclusive: true, notRun: true},
		{kind: wire.HTTPStatus, status: 402, reason: "http_status", doubtful: true},
		{kind: wire.HTTPStatus, status: 403, reason: "http_status", inconclusive: true, notRun: true},
		{kind: wire.HTTPStatus, status: 404, reason: "http_status", doubtful: true, notRun: true},
		{kind: wire.HTTPStatus, status: 405, reason: "http_status", doubtful: true, notRun: true},
		{kind: wire.HTTPStatus, status: 406, reason: "http_status", doubtful: true, notRun: true},
		{kind: wire.HTTPStatus, status: 408, reason: "http_status", doubtful: true},
		{kind: wire.HTTPStatus, status: 413, reason: "http_status", doubtful: true, notRun: true},
		{kind: wire.HTTPStatus, status: 415, reason: "http_status", doubtful: true, notRun: true},
		{kind: wire.HTTPStatus, status: 422, reason: "http_status", doubtful: true, notRun: true},
		{kind: wire.HTTPStatus, status: 429, reason: "http_status", inconclusive: true, passing: true, notRun: true},
		{kind: wire.HTTPStatus, status: 499, reason: "http_status", doubtful: true},
		{kind: wire.HTTPStatus, status: 500, reason: "http_status", inconclusive: true},
		{kind: wire.HTTPStatus, status: 501, reason: "http_status", inconclusive: true},
		{kind: wire.HTTPStatus, status: 502, reason: "http_status", inconclusive: true, passing: true},
		{kind: wire.HTTPStatus, status: 503, reason: "http_status", inconclusive: true, passing: true},
		{kind: wire.HTTPStatus, status: 504, reason: "http_status", inconclusive: true, passing: true},
		{kind: wire.HTTPStatus, status: 505, reason: "http_status", inconclusive: true},
	} {
		op := &operation{lane: &lane{}}
		f := op.explain("leg", &wire.Error{Kind: test.kind, Status: test.status, Wrote: true}, errors.New("no"))
		if f.leg != "leg" || f.reason != test.reason || !f.sent {
			t.Errorf("%s %d: leg %q, reason %q, sent %t", test.kind, test.status, f.leg, f.reason, f.sent)
		}
		if inconclusive(f) != test.inconclusive || doubtful(f) != test.doubtful || passing(f) != test.passing {
			t.Errorf("%s %d: inconclusive %t, doubtful %t, passing %t", test.kind, test.status, inconclusive(f), doubtful(f), passing(f))
		}
		want := gate.OutcomeUnknown
		if test.notRun {
			want = gate.UpstreamError
		}
		if f.work = true; verdict(f) != want {
			t.Errorf("%s %d: the verdict of a call is %s, want %s", test.kind, test.status, verdict(f), want)
		}
		if f.sent = false; verdict(f) != gate.NotSent {
			t.Errorf("%s %d: the verdict of a call that never left is %s", test.kind, test.status, verdict(f))
		}
	}
	if f := refusedCredential("leg", errors.New("no")); f.leg != "leg" || f.reason != credential.ReasonUnresolved || f.text != "credential: no" {
		t.Errorf("%+v", f)
	}
}

// A waited is a session whose token requests are what its header had to wait for.
type waited []gate.Leg

func (w *waited) Header(context.Context) (string, string, error) { return "", "", nil }
func (w *waited) Legs() []gate.Leg                               { return *w }
func (w *waited) Close()                                         {}

// The time of a token request is its own, and it is in the account once.
func TestAccount(t *testing.T) {
	tokens := &waited{{Name: "discovery", Took: 2 * time.Second, Status: 200}, {Name: "token", Took: 3 * time.Second, Status: 200}}
	op := &operation{credential: tokens}
	op.account("initialize", 9*time.Second, http.StatusOK)
	*tokens = append(*tokens, gate.Leg{Name: "token", Took: 7 * time.Second, Status: 200})
	op.account("tools/call", 8*time.Second, http.StatusNotFound)
	want := append(slices.Clone((*tokens)[:2]), gate.Leg{Name: "initialize", Took: 4 * time.Second, Status: 200},
		(*tokens)[2], gate.Leg{Name: "tools/call", Took: time.Second, Status: 404})
	if !slices.Equal(op.legs, want) || op.latency != time.Second || op.status != 404 {
		t.Errorf("the legs are %v, the last took %s with status %d; want %v", op.legs, op.latency, op.status, want)
	}
}
