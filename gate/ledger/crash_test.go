package ledger_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

var rounds = flag.Int("rounds", 8, "how many processes TestKilledProcesses kills")

const victimDir = "LEDGER_TEST_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(dir)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// victim appends intents from 16 callers until it is killed, and says on stdout
// which ones were acknowledged.
func victim(dir string) {
	l, err := ledger.Open(ledger.Options{Dir: dir, SegmentBytes: 256 << 10})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for range 16 {
		go func() { // ends with the process, which is the point
			for {
				intent := gate.Entry{Kind: gate.KindIntent, Tool: "mcp_demo_echo", Arguments: strings.Repeat("x", rand.IntN(300))}
				if err := l.Append(context.Background(), &intent); err != nil {
					fmt.Println(err)
					os.Exit(1)
				}
				os.Stdout.WriteString(strconv.FormatUint(intent.Number, 10) + "\n")
				l.Enqueue(&gate.Entry{Kind: gate.KindOutcome, Intent: intent.Number, Verdict: gate.OK})
			}
		}()
	}
	select {}
}

// Whenever a process is killed, what it acknowledged is there, the chain holds,
// and the next process settles what was left.
func TestKilledProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	acknowledged := make(map[uint64]bool)
	for range *rounds {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), victimDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		alive := 1 + rand.IntN(1500)
		for n := 0; ; n++ {
			line, err := lines.ReadString('\n')
			if err == io.EOF {
				break
			}
			number, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
			if err != nil {
				t.Fatalf("the process says %q", line)
			}
			acknowledged[number] = true
			if n == alive {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed, and says so
	}
	closeLedger(t, open(t, ledger.Options{Dir: dir, Now: time.Now}))
	if r := verifyGood(t, dir); len(r.Unsettled) != 0 {
		t.Errorf("unsettled: %v", r.Unsettled)
	}
	outcomes := make(map[uint64]int)
	for _, e := range read(t, dir) {
		delete(acknowledged, e.Number)
		if e.Kind == gate.KindOutcome {
			outcomes[e.Intent]++
		}
	}
	if len(acknowledged) != 0 {
		t.Errorf("%d acknowledged entries are missing", len(acknowledged))
	}
	for intent, n := range outcomes {
		if n != 1 {
			t.Errorf("intent %d has %d outcomes", intent, n)
		}
	}
}
