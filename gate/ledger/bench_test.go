package ledger_test

import (
	"context"
	"sync/atomic"
	"testing"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
	"gatehouse/gate/ledger"
)

// benchmarkIntents measures calls: a durable intent and its outcome.
func benchmarkIntents(b *testing.B, callers int) {
	l := open(b, ledger.Options{Dir: b.TempDir()})
	template := gatetest.FullEntry()
	template.Kind = gate.KindIntent
	template.Approval, template.Through, template.Signature, template.Legs = 0, 0, "", nil
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan error, callers)
	b.ResetTimer()
	for range callers {
		go func() { // ends when nothing is left; waited for below
			for left.Add(-1) >= 0 {
				intent := template
				if err := l.Append(context.Background(), &intent); err != nil {
					done <- err
					return
				}
				l.Enqueue(&gate.Entry{Kind: gate.KindOutcome, Intent: intent.Number, Verdict: gate.OK})
			}
			done <- nil
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "intents/s")
}

func BenchmarkIntents1(b *testing.B)  { benchmarkIntents(b, 1) }
func BenchmarkIntents64(b *testing.B) { benchmarkIntents(b, 64) }
