package console

import (
	"strings"
	"testing"
	"time"

	"gatehouse/federation/control"
	"gatehouse/gate"
)

// A login that nothing can renew is announced a day before its end, and once it
// is over, that is what is said.
func TestNowAnnouncesTheEndOfALogin(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { end := now.Add(d); return &end }
	for name, test := range map[string]struct {
		ends  *time.Time
		state string
		want  string
	}{
		"nothing known":  {nil, "ok", ""},
		"in two days":    {at(48 * time.Hour), "ok", ""},
		"within the day": {at(5*time.Hour + time.Minute), "ok", "the login ends in 5 h"},
		"over":           {at(-time.Minute), "expired", "credential expired"},
		"taken back":     {at(time.Hour), "login needed", "credential login needed"},
	} {
		items := serverItems(&control.Server{ID: "crm", Name: "CRM", Enabled: true, Class: gate.PublicContent.String(),
			CredentialState: test.state, CredentialEnds: test.ends, LastImport: &now, LastContact: &now}, now)
		if test.want == "" {
			if len(items) != 0 {
				t.Errorf("%s: %+v", name, items)
			}
			continue
		}
		if len(items) != 1 || !strings.HasSuffix(items[0].Title, test.want) || test.state == "ok" && items[0].Run != "gatehouse login crm" {
			t.Errorf("%s: %+v, want %q", name, items, test.want)
		}
	}
}
