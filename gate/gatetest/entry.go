package gatetest

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"gatehouse/gate"
)

// FullEntry returns an entry in which every field but Number says something.
func FullEntry() gate.Entry {
	when := time.Date(2026, 12, 1, 9, 30, 15, 123456000, time.UTC)
	return gate.Entry{
		Time: when, Kind: gate.KindOutcome, Caller: "alice \"the first\"", Via: "token", Session: "0123456789abcdef",
		Request: `"a\u0001b"`, Tool: "mcp_demo_echo", Server: "demo", Origin: "https://demo.example.org",
		RemoteName: "echo\u2028<b>", Definition: gate.DigestOf([]byte("definition")), Class: gate.SourceCode,
		Zone: "external_eu", Ceiling: gate.InternalConfiguration, Verdict: gate.UpstreamError, Reason: "http_status",
		Detail: "the \x01 server said \"kind\":\"intent\"", Approval: 12, AnsweredBy: "bob", ArgumentDigest: gate.DigestOf([]byte("{}")),
		Arguments: `{"hash":"no","id":9007199254740993}`, Intent: 11,
		Legs:   []gate.Leg{{Name: "initialize", Took: 1500, Status: 200}, {Name: "tools/call", Took: 2500}},
		Status: 502, BytesIn: 10, BytesOut: 20, ResultDigest: gate.DigestOf([]byte("result")), Generation: 3,
		Subject: "user", Audience: "https://api.example.org", Trace: "4bf92f3577b34da6a3ce929d0e0e4736", Count: 4,
		Until: when.Add(time.Minute), Through: 5, Signature: "c2lnbmVk",
	}
}

// Differ names the fields in which two entries differ; "" when they are equal.
func Differ(a, b gate.Entry) string {
	var diff []string
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			diff = append(diff, fmt.Sprintf("%s: %v, %v", x.Type().Field(i).Name, x.Field(i), y.Field(i)))
		}
	}
	return strings.Join(diff, "; ")
}
