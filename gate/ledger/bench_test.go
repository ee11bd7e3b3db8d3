package ledger_test

import (
	"context"
	"os"
	"path/filepath"
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

// BenchmarkBareSync is what the disk itself takes: a line of the same length and
// one sync for each call, with nothing around it.
func BenchmarkBareSync(b *testing.B) {
	file, err := os.Create(filepath.Join(b.TempDir(), "lines"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	template := gatetest.FullEntry()
	line, _ := ledger.AppendLine(nil, &template, ledger.Hash{})
	for b.Loop() {
		if _, err := file.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := ledger.SyncFile(file); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "intents/s")
}
