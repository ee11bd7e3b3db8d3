package scenarios

import (
	"bufio"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/e2e/rig"
	"gatehouse/upstream/upstreamtest/leak"
)

var loginURL = regexp.MustCompile(`^https?://\S+/authorize\?\S+$`)

// login runs gatehouse login and follows the url that it prints, as a browser
// would: to the authorization server, and from there to the loopback receiver.
func (i *identity) login(t *testing.T, server string) string {
	t.Helper()
	command := i.Command("login", server)
	login := exec.Command(command[0], command[1:]...)
	var stderr strings.Builder
	login.Stderr = &stderr
	stdout, err := login.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := login.Start(); err != nil {
		t.Fatal(err)
	}
	watch := time.AfterFunc(time.Minute, func() { login.Process.Kill() })
	defer watch.Stop()
	var said strings.Builder
	opened := 0
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if !loginURL.MatchString(lines.Text()) {
			continue
		}
		opened++
		response, err := (&http.Client{Timeout: 20 * time.Second}).Get(lines.Text())
		if err != nil {
			t.Error(err)
			login.Process.Kill() // nobody will come back
			continue
		}
		response.Body.Close()
		if host := response.Request.URL.Hostname(); response.StatusCode != http.StatusOK || host != "127.0.0.1" || response.Request.URL.Path == "/authorize" {
			t.Errorf("the browser ended on %s with %s", response.Request.URL.Path, response.Status)
		}
	}
	err = login.Wait()
	leak.Write(t, "commands.out", said.String()+stderr.String())
	if err != nil || opened != 1 {
		t.Fatalf("login: %v, %d urls\n%s%s", err, opened, said.String(), stderr.String())
	}
	return said.String()
}

// credential is the state of a server's credential.
func (i *identity) credential(t *testing.T, server string) string {
	t.Helper()
	type row struct {
		ID    string `json:"id"`
		State string `json:"credential_state"`
	}
	for _, s := range rig.JSON[row](t, i.Gatehouse, "servers", "list") {
		if s.ID == server {
			return s.State
		}
	}
	t.Fatalf("no server %q", server)
	return ""
}

func TestLoginAndLogout(t *testing.T) {
	i := newIdentity(t, nil, nil, "")
	if state := i.credential(t, "hosted"); state != "login needed" {
		t.Errorf("state %q before the login", state)
	}
	if r := i.Run(t, "import", "hosted"); r.Code == 0 || !strings.Contains(r.Stdout+r.Stderr, "gatehouse login") {
		t.Errorf("import before the login: %+v", r)
	}
	if said := i.login(t, "hosted"); !strings.Contains(said, "logged in at hosted") {
		t.Errorf("login said:\n%s", said)
	}
	if state := i.credential(t, "hosted"); state != "ok" {
		t.Errorf("state %q after the login", state)
	}
	redeemed := i.auth.TokenRequests()[len(i.auth.TokenRequests())-1]
	if redeemed.Get("grant_type") != "authorization_code" || redeemed.Get("code_verifier") == "" || redeemed.Get("resource") != i.hosted.Endpoint() {
		t.Error("the code was redeemed without PKCE or resource")
	}
	i.Do(t, "import", "hosted")
	i.Do(t, "tools", "enable", "mcp_hosted_*")
	if r := i.as(t, i.Token(t, "bob")).Call(t, "mcp_hosted_echo", order); !r.OK() || r.Text() != order {
		t.Errorf("a call after the login: %s", r)
	}
	visits := i.hosted.Visits()
	if last := visits[len(visits)-1]; last.Subject != "operator" {
		t.Errorf("the server saw a token of %q", last.Subject)
	}

	last, seen := i.Last(t), len(visits)
	i.Do(t, "logout", "hosted")
	if i.auth.Revocations() == 0 || i.credential(t, "hosted") != "login needed" {
		t.Errorf("after the logout: %d revocations, state %q", i.auth.Revocations(), i.credential(t, "hosted"))
	}
	if entries := only(i.Since(t, last, "login"), "login"); len(entries) != 1 || entries[0].Verdict != "ok" || entries[0].Server != "hosted" {
		t.Errorf("on record: %+v", entries)
	}
	if r := i.as(t, i.Token(t, "bob")).Call(t, "mcp_hosted_echo", order); r.OK() || r.Outcome() != "not_sent" || len(i.hosted.Visits()) != seen {
		t.Errorf("a call after the logout: %s", r)
	}
}
