package catalog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

// largeListing is one server's 1 000 tools with the sizes of published ones:
// schemas of 650 bytes at the median, 18 KB at the 99th percentile, every tenth
// with local references, half of them draft-07.
func largeListing(server int) catalog.Listing {
	l := catalog.Listing{Era: "2026-07-28", Pages: 2}
	for i := range 1000 {
		properties := 5 + i%4
		switch {
		case i%100 == 99:
			properties = 160
		case i%20 == 19:
			properties = 40
		}
		l.Tools = append(l.Tools, largeTool(server, i, properties))
	}
	return l
}

func largeTool(server, i, properties int) json.RawMessage {
	var b strings.Builder
	fmt.Fprintf(&b, `{"name":"resource_%d_operation_%d","title":"Operation %d","description":"%s","inputSchema":{`, server, i, i,
		strings.Repeat(fmt.Sprintf("Works on resource %d of the service. ", i), 6))
	if i%2 == 0 {
		b.WriteString(`"$schema":"http://json-schema.org/draft-07/schema#",`)
	}
	b.WriteString(`"type":"object","properties":{`)
	for p := range properties {
		if p > 0 {
			b.WriteByte(',')
		}
		switch {
		case i%10 == 0 && p == 1:
			fmt.Fprintf(&b, `"filter_%d":{"$ref":"#/definitions/filter"}`, p)
		case p%3 == 2:
			fmt.Fprintf(&b, `"count_%d":{"type":"integer","minimum":0,"maximum":1000,"description":"How many of %d."}`, p, p)
		default:
			fmt.Fprintf(&b, `"field_%d":{"type":"string","description":"The value of field %d, as it is stored."}`, p, p)
		}
	}
	b.WriteString(`},"required":["field_0"]`)
	if i%10 == 0 {
		b.WriteString(`,"definitions":{"filter":{"type":"object","properties":{"op":{"enum":["eq","ne"]},"value":{"type":"string"}}}}`)
	}
	b.WriteString(`},"annotations":{"readOnlyHint":true,"openWorldHint":true}}`)
	return json.RawMessage(b.String())
}

func largeServers() []catalog.ServerSettings {
	var out []catalog.ServerSettings
	for i := range 10 {
		out = append(out, server(gate.ServerID(fmt.Sprintf("s%d", i))))
	}
	return out
}

func importLarge(tb testing.TB, c *catalog.Catalog, listings []catalog.Listing) {
	var wg sync.WaitGroup
	for i, l := range listings {
		wg.Go(func() {
			r, err := c.Import(context.Background(), gate.ServerID(fmt.Sprintf("s%d", i)), lists(l), false)
			if err != nil || r.Imported != 1000 {
				tb.Errorf("%s: %v", r.Summary(), err)
			}
		})
	}
	wg.Wait()
}

func largeCatalogue(tb testing.TB) (*catalog.Catalog, []catalog.Listing) {
	var listings []catalog.Listing
	for i := range 10 {
		listings = append(listings, largeListing(i))
	}
	c, err := catalog.Open(catalog.Options{Store: discard{}})
	if err != nil {
		tb.Fatal(err)
	}
	c.Configure(largeServers(), nil, gate.Enforce)
	return c, listings
}

// discard is a store for measurements: it keeps nothing.
type discard struct{}

func (discard) Load() ([]catalog.StoredServer, []catalog.StoredTool, error) { return nil, nil, nil }
func (discard) Save(catalog.StoredServer, []catalog.StoredTool, []gate.RemoteName) error {
	return nil
}

func BenchmarkImportTenThousand(b *testing.B) {
	for b.Loop() {
		c, listings := largeCatalogue(b)
		importLarge(b, c, listings)
	}
}

func BenchmarkImportAgainUnchanged(b *testing.B) {
	c, listings := largeCatalogue(b)
	importLarge(b, c, listings)
	for b.Loop() {
		importLarge(b, c, listings)
	}
}

func BenchmarkPageOfTenThousand(b *testing.B) {
	c, listings := largeCatalogue(b)
	importLarge(b, c, listings)
	if _, err := c.Enable(nil, "mcp_*"); err != nil {
		b.Fatal(err)
	}
	s := c.Snapshot()
	caller := &gate.Caller{Name: "a", Admin: true, Zone: gate.Local, Groups: gate.OnlyGroups("mcp_s0", "mcp_s1", "mcp_s2", "mcp_s3", "mcp_s4", "mcp_s5", "mcp_s6", "mcp_s7", "mcp_s8", "mcp_s9")}
	if _, err := s.Page(caller, catalog.Era2026, ""); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Page(caller, catalog.Era2026, ""); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkViewOfTenThousand(b *testing.B) {
	c, listings := largeCatalogue(b)
	importLarge(b, c, listings)
	if _, err := c.Enable(nil, "mcp_*"); err != nil {
		b.Fatal(err)
	}
	s := c.Snapshot()
	for n := 0; b.Loop(); n++ {
		if _, err := s.Page(&gate.Caller{Admin: true, Zone: gate.Local, Groups: gate.EveryGroup(), NameBudget: 1000 + n}, catalog.Era2026, ""); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSwapOfTenThousand(b *testing.B) {
	c, listings := largeCatalogue(b)
	importLarge(b, c, listings)
	servers := largeServers()
	for b.Loop() {
		c.Configure(servers, nil, gate.Enforce)
	}
}

func BenchmarkFindInTenThousand(b *testing.B) {
	c, listings := largeCatalogue(b)
	importLarge(b, c, listings)
	if _, err := c.Enable(nil, "mcp_*"); err != nil {
		b.Fatal(err)
	}
	s := c.Snapshot()
	s.Find(admin, "operation", 1)
	for b.Loop() {
		if len(s.Find(admin, "resource 3 operation 77", 5)) == 0 {
			b.Fatal("nothing found")
		}
	}
}

func BenchmarkCheckArguments(b *testing.B) {
	c, listings := largeCatalogue(b)
	importLarge(b, c, listings)
	check := c.Snapshot().Tool("mcp_s0_resource_0_operation_7").Arguments.Check
	args := []byte(`{"field_0":"x","field_1":"y","count_2":7}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := check(args); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemoryOfTenThousand reports what the catalogue, a search index and
// all pages of one view in both eras keep alive.
func BenchmarkMemoryOfTenThousand(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		c, listings := largeCatalogue(b)
		runtime.GC()
		runtime.ReadMemStats(&before)
		importLarge(b, c, listings)
		if _, err := c.Enable(nil, "mcp_*"); err != nil {
			b.Fatal(err)
		}
		s := c.Snapshot()
		for _, era := range []catalog.Era{catalog.Era2025, catalog.Era2026} {
			if _, err := s.Page(admin, era, ""); err != nil {
				b.Fatal(err)
			}
		}
		s.Find(admin, "operation", 5)
		listings = nil
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), "MiB")
		runtime.KeepAlive(c)
	}
}

func TestPageAllocatesNothingThatGrows(t *testing.T) {
	for _, s := range []*catalog.Snapshot{realisticOnce().Snapshot(), open(t, newMemory()).Snapshot()} {
		if _, err := s.Page(admin, catalog.Era2026, ""); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { s.Page(admin, catalog.Era2026, "") }); n > 0 {
			t.Errorf("a page costs %v allocations", n)
		}
	}
}
