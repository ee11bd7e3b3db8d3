package upstream

import (
	"context"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
	"gatehouse/upstream/credential"
)

// A Report is what a connection test found.
type Report struct {
	Era           string // Legacy or Modern
	Version       string // the protocol version in use
	ServerName    string // as the server calls itself, clipped; for display only
	ServerVersion string
	Legs          []gate.Leg
	Latency       time.Duration // of the last leg
}

// Test shakes hands with a server, by the handshake of its era and nothing else.
func (c *Client) Test(ctx context.Context, id gate.ServerID) (Report, error) {
	var report Report
	err := c.operate(ctx, id, credential.Discovery(), func(op *operation) *fault {
		f := op.greet(&report)
		report.Legs, report.Latency = op.legs, op.latency
		return f
	})
	if err != nil {
		return Report{}, err
	}
	return report, nil
}

// greet is the handshake of either era. In the 2026 era the probe is one.
func (op *operation) greet(report *Report) *fault {
	era, _ := op.lane.knownEra(op.client)
	if era == Legacy {
		return op.inEra(func(era string) *fault {
			if era == Modern {
				return op.discover(report)
			}
			return op.welcome(report)
		})
	}
	found, result, f := op.probe()
	switch {
	case f != nil:
		return f
	case found == Modern && result != nil:
		report.modern(result)
		return nil
	case found == Modern:
		return op.discover(report)
	case op.lane.server.Protocol == Modern:
		return op.refuse("server/discover", ReasonVersion, "protocol is pinned to %s, which the server does not say it speaks (it names %d versions); set protocol = %q",
			Modern, len(supported(result, "supportedVersions")), Auto)
	}
	return op.welcome(report)
}

func (op *operation) welcome(report *Report) *fault {
	session, hello, f := op.handshake()
	if f != nil {
		return f
	}
	op.part(session)
	*report = Report{Era: Legacy, Version: session.version, ServerName: hello.name, ServerVersion: hello.version}
	return nil
}

func (op *operation) discover(report *Report) *fault {
	reply, f := op.retried("server/discover", op.modernRequest("server/discover", [][]byte{opening}, ""))
	if f != nil {
		return f
	}
	report.modern(reply.Result)
	return nil
}

func (r *Report) modern(result []byte) {
	*r = Report{Era: Modern, Version: Modern}
	members, err := rawjson.Object(result)
	if err != nil {
		return
	}
	meta, _ := rawjson.Get(members, "_meta")
	if !rawjson.IsObject(meta) {
		return
	}
	if members, err = rawjson.Object(meta); err != nil {
		return
	}
	info, _ := rawjson.Get(members, "io.modelcontextprotocol/serverInfo")
	hello := introduction(info)
	r.ServerName, r.ServerVersion = hello.name, hello.version
}

// operate runs an operation of the operator's: one that needs no permit.
func (c *Client) operate(ctx context.Context, id gate.ServerID, p credential.Purpose, run func(*operation) *fault) error {
	l, refused := c.enter(id, c.Fleet())
	if refused != nil {
		return refused
	}
	defer c.errands.leave()
	op, f := c.begin(ctx, l, p, trace{})
	defer op.end()
	if f == nil {
		f = run(op)
	}
	if f != nil {
		return op.error(f)
	}
	op.contact()
	return nil
}
