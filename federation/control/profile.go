package control

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/pprof"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// profilePath is where the socket serves the runtime's profiles, for people and
// for go tool pprof. They are nowhere else: a profile tells what the process
// does, and taking one slows it down.
const profilePath = "/debug/pprof/"

// Profiles are the kinds that can be taken.
func Profiles() []string {
	return []string{"allocs", "block", "cpu", "goroutine", "heap", "mutex", "trace"}
}

// longestProfile bounds those that are taken over a time.
const longestProfile = 5 * time.Minute

func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+profilePath, pprof.Index) // and the named ones below it
	mux.HandleFunc("GET "+profilePath+"profile", limited(pprof.Profile))
	mux.HandleFunc("GET "+profilePath+"trace", limited(pprof.Trace))
	return mux
}

// limited refuses a profile that would take longer than anybody waits.
func limited(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if text := r.FormValue("seconds"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > int(longestProfile.Seconds()) {
				http.Error(w, "seconds: want a whole number from 1 to "+strconv.Itoa(int(longestProfile.Seconds())), http.StatusBadRequest)
				return
			}
		}
		next(w, r)
	}
}

// Profile copies a profile of the daemon into w. Over is how long those take
// that are taken over a time, cpu and trace, rounded up to whole seconds.
func (r *Remote) Profile(ctx context.Context, kind string, over time.Duration, w io.Writer) error {
	if !slices.Contains(Profiles(), kind) {
		return fmt.Errorf("unknown profile %q (want %s)", kind, strings.Join(Profiles(), ", "))
	}
	query := url.Values{}
	switch kind {
	case "cpu":
		kind = "profile"
		fallthrough
	case "trace":
		query.Set("seconds", strconv.FormatInt(int64(math.Ceil(over.Seconds())), 10)) // it takes whole seconds only
	}
	ctx, cancel := context.WithTimeout(ctx, over+time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, host+profilePath+kind+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return r.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // what could be read of the reason
		return fmt.Errorf("%s: the daemon gave no profile: %s: %s", filepath.Base(r.path), resp.Status, strings.TrimSpace(string(text)))
	}
	_, err = io.Copy(w, resp.Body)
	return err
}
