package federation

import (
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest"
)

func TestNews(t *testing.T) {
	r := newRig(t, upstreamtest.Profile{Modern: true}, "", "")
	for name, happens := range map[string]func(){
		"an entry": func() {
			if err := r.g.Ledger.Append(t.Context(), &gate.Entry{Kind: gate.KindTest}); err != nil {
				t.Fatal(err)
			}
		},
		"another catalogue": func() { r.g.catalogChanged(r.g.Catalog.Snapshot(), r.g.Catalog.Snapshot()) },
	} {
		news, too := r.g.News(), r.g.News()
		select {
		case <-news:
			t.Fatalf("%s: there are news before it", name)
		default:
		}
		happens()
		for _, wait := range []<-chan struct{}{news, too} {
			select {
			case <-wait:
			case <-time.After(5 * time.Second):
				t.Fatalf("%s: nobody is told", name)
			}
		}
	}
	if entries := r.entries(gate.KindTest, 1); r.g.Recorded() != entries[0].Number {
		t.Errorf("the last entry is %d, not %d", r.g.Recorded(), entries[0].Number)
	}
}
