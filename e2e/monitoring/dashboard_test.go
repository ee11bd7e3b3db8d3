package monitoring

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/e2e/rig"
)

// watched is how long the load goes on before anything is asked: scrapes and
// evaluations come every two seconds, and rates want several.
const watched = 18 * time.Second

// A panel is what is read of a dashboard.
type panel struct {
	Title   string
	Targets []struct{ Expr, LegendFormat string }
}

// A sample is one of the answer to a query.
type sample struct {
	Metric map[string]string
	Value  [2]any // time and value
}

// query asks one expression at this moment, and says what is wrong with it.
func (w *world) query(t *testing.T, expression string) ([]sample, error) {
	t.Helper()
	response, err := http.Get(w.prometheus + "/api/v1/query?query=" + url.QueryEscape(expression))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Status, Error string
		Data          struct{ Result []sample }
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		return nil, fmt.Errorf("%v %s", err, answer.Error)
	}
	return answer.Data.Result, nil
}

// TestPrometheus is one run of everything, since the load takes its time.
func TestPrometheus(t *testing.T) {
	w := newWorld(t)
	end := w.load(t)
	for began := time.Now(); time.Since(began) < watched; time.Sleep(3 * time.Second) {
		w.Run(t, "import", "never") // fails, each time
		w.Do(t, "import", "free")
		w.Do(t, "reload", "--yes")
	}
	defer end()

	t.Run("metrics", func(t *testing.T) {
		text := w.scrape(t)
		if r := rig.Run(t, text, tool(t, "promtool"), "check", "metrics"); r.Code != 0 || r.Stdout+r.Stderr != "" {
			t.Errorf("promtool check metrics: exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
		}
		if strings.Contains(text, "made_up") {
			t.Error("a made-up name is in the metrics")
		}
	})
	t.Run("dashboard", func(t *testing.T) { w.checkDashboard(t) })
	t.Run("alerts", func(t *testing.T) { w.checkAlerts(t) })
}

func (w *world) scrape(t *testing.T) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, w.Base+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.Token(t, "alice"))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v, status %d", err, response.StatusCode)
	}
	return string(text)
}

var placeholder = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// checkDashboard asks every expression as Grafana would. Each gives a number, and
// series that have the labels which their legend names.
func (w *world) checkDashboard(t *testing.T) {
	content, err := os.ReadFile(file("dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct{ Panels []panel }
	if err := json.Unmarshal(content, &board); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "12s", "$job", "gatehouse", "$instance", ".+")
	asked := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			asked++
			samples, err := w.query(t, fill.Replace(target.Expr))
			if err != nil {
				t.Errorf("%s: %s: %v", p.Title, target.Expr, err)
				continue
			}
			if !slices.ContainsFunc(samples, func(s sample) bool { return s.Value[1] != "NaN" }) {
				t.Errorf("%s: %s: no data", p.Title, target.Expr)
				continue
			}
			for _, label := range placeholder.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.ContainsFunc(samples, func(s sample) bool { _, ok := s.Metric[label[1]]; return ok }) {
					t.Errorf("%s: no series of %s has the label %s", p.Title, target.Expr, label[1])
				}
			}
		}
	}
	if asked < 30 {
		t.Errorf("only %d expressions were found", asked)
	}
}

// checkAlerts looks at the rules that Prometheus evaluates: all of them can be,
// those that have a reason here wait for their time, and the others do not.
func (w *world) checkAlerts(t *testing.T) {
	want := []string{"GatehouseCallsFail gone", "GatehouseCredentialUnusable locked", "GatehouseNoContact never"}
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct {
					Name, Health, LastError string
					Alerts                  []struct{ Labels map[string]string }
				}
			}
		}
	}
	w.get(t, "/api/v1/rules", &rules)
	count, got := 0, []string{}
	for _, g := range rules.Data.Groups {
		for _, rule := range g.Rules {
			count++
			if rule.Health != "ok" || rule.LastError != "" {
				t.Errorf("%s: %s %s", rule.Name, rule.Health, rule.LastError)
			}
			for _, alert := range rule.Alerts {
				got = append(got, rule.Name+" "+alert.Labels["server"])
			}
		}
	}
	slices.Sort(got)
	// Questions run out here all the time; how many by now is a matter of seconds.
	got = slices.DeleteFunc(got, func(s string) bool { return s == "GatehouseApprovalsExpire " })
	if !slices.Equal(got, want) {
		t.Errorf("alerts %q, want %q", got, want)
	}
	if count < 10 {
		t.Errorf("only %d rules were found", count)
	}
}
