package console

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/federation/control"
)

const (
	// maxStreams bounds the pages of one session that are kept up to date at the
	// same time. Browsers allow six connections to a host without TLS, and pages
	// have to be loaded over the others.
	maxStreams = 4
	// settle is how long news are gathered before a page hears of them.
	settle = 200 * time.Millisecond
	// eventEvery is the shortest time between two events: a page that is told asks
	// for what is new.
	eventEvery = time.Second
	// lookEvery is how often a stream looks without news. A session ends, a
	// question expires and a disk fills without anybody putting it on record.
	lookEvery = 5 * time.Second
	// eventLimit bounds the writing of one event: a browser that takes longer is gone.
	eventLimit = 10 * time.Second
)

// showLive keeps an open page up to date: an event with a stamp at first and
// whenever the stamp is another one, until the session is over, the browser is
// gone or the gateway leaves. A comment now and then shows that the line is good.
func showLive(v *visit) error {
	if !v.session.stream() {
		v.w.Header().Set("Retry-After", strconv.Itoa(int(lookEvery.Seconds())))
		http.Error(v.w, "too many open pages", http.StatusServiceUnavailable)
		return nil
	}
	defer v.session.streamEnded()
	v.w.Header().Set("Content-Type", "text/event-stream")
	v.w.Header().Set("X-Accel-Buffering", "no")
	for said := ""; ; {
		// Before the look, so that what happens meanwhile is not missed.
		news := v.g.News()
		if s, _ := v.sessionOf(v.r, false); s == nil {
			return nil // the browser asks anew, and is told
		}
		stamp, err := v.stamp()
		text := ": nothing new\n\n"
		switch {
		case err != nil:
			v.g.Logger.Warn("an open page of the console cannot be kept up to date", "error", err)
			return nil
		case stamp != said:
			text = "data: " + strings.ReplaceAll(stamp, "\n", "\ndata: ") + "\n\n"
		}
		if v.send(text) != nil || stamp != said && !v.pause(eventEvery, nil) {
			return nil
		}
		said = stamp
		if !v.pause(lookEvery, news) {
			return nil
		}
	}
}

// pause waits, for news at most: a moment after those it goes on. It reports false
// when the stream has to end.
func (v *visit) pause(most time.Duration, news <-chan struct{}) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-news:
		return v.pause(settle, nil)
	case <-v.r.Context().Done():
	case <-v.g.Leaving():
	}
	return false
}

func (v *visit) send(text string) error {
	rc := http.NewResponseController(v.w)
	err := rc.SetWriteDeadline(time.Now().Add(eventLimit))
	_, errWrite := v.w.Write([]byte(text))
	return errors.Join(err, errWrite, rc.Flush())
}

// stamp tells a page whether it is out of date: how many questions are open, and
// one line a topic, which changes when there is something new to show.
func (v *visit) stamp() (string, error) {
	ctx := v.r.Context()
	status, err := v.api.Status(ctx)
	if err != nil {
		return "", err
	}
	open, err := v.api.Approvals(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d\nquestions%s\ncatalogue %d\nledger %d", len(open), numbers(open), status.Generation, v.g.Recorded()), nil
}

func numbers(open []control.Approval) string {
	var b strings.Builder
	for _, q := range open {
		b.WriteString(" " + strconv.FormatUint(q.Number, 10))
	}
	return b.String()
}
