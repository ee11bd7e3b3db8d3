package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// longestRetryAfter bounds what a server may ask us to wait.
const longestRetryAfter = 24 * time.Hour

// failed makes the error of an exchange that brought no response.
func (x *exchange) failed(err error) *Error {
	e := &Error{Kind: Transport, ID: x.id, cause: err, Wrote: x.trip != nil && !x.trip.neverLeft()}
	var refused *HostError
	switch {
	case errors.As(err, &refused):
		e.Kind, e.text = HostRefused, refused.Error()
	case x.over():
		x.ended(e)
	default:
		e.text = "connection failed: " + transportText(err)
	}
	return e
}

// over reports whether the caller's context has ended. A dial keeps the deadline by
// a timer of its own, and may give up a moment before the context says why.
func (x *exchange) over() bool {
	if deadline, ok := x.ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-x.ctx.Done()
	}
	return x.ctx.Err() != nil
}

// ended makes e say that the caller's context is over.
func (x *exchange) ended(e *Error) {
	e.Kind, e.cause = Cancelled, x.ctx.Err()
	e.text = "the request was cancelled"
	if errors.Is(e.cause, context.DeadlineExceeded) {
		e.Kind, e.text = Deadline, "no reply before the deadline"
	}
	if e.Unanswered != "" {
		e.text += fmt.Sprintf("; the server waited for an answer to its own %q, which it was never promised", Clip(e.Unanswered))
	}
}

// transportText describes an error of the connection. An *url.Error would show
// the query of an url.
func transportText(err error) string {
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return fmt.Sprintf("the name %q did not resolve: %s", Clip(dns.Name), Clip(dns.Err))
	}
	return Clip(err.Error())
}

// statusError makes the error of a response whose status is not 2xx.
func statusError(res *http.Response) *Error {
	e := &Error{Kind: HTTPStatus, RetryAfter: retryAfter(res.Header.Get("Retry-After"), time.Now())}
	e.text = fmt.Sprintf("HTTP %d", res.StatusCode)
	if name := http.StatusText(res.StatusCode); name != "" {
		e.text += " " + name
	}
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		e.Challenge = strings.Join(res.Header.Values("Www-Authenticate"), ", ")
	}
	return e
}

// redirectError says where the url should point instead. Of a foreign target
// only the origin is shown: the rest is the server's to choose, and may be made
// to lead somebody somewhere.
func redirectError(res *http.Response, from *url.URL) *Error {
	e := &Error{Kind: Redirect, text: fmt.Sprintf("HTTP %d redirect, and redirects are not followed", res.StatusCode)}
	to, err := from.Parse(res.Header.Get("Location"))
	if res.Header.Get("Location") == "" || err != nil {
		e.text += "; correct url"
		return e
	}
	origin := url.URL{Scheme: to.Scheme, Host: to.Host}
	if to.Scheme == from.Scheme && canonicalHost(to) == canonicalHost(from) {
		shown := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path, RawPath: to.RawPath}
		e.text += fmt.Sprintf("; set url = %q", Clip(shown.String()))
		return e
	}
	e.text += fmt.Sprintf("; it leads to %q; correct url if that is meant", Clip(origin.String()))
	return e
}

func canonicalHost(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// retryAfter reads RFC 9110 section 10.2.3: whole seconds or a date. What
// cannot be read, lies in the past or is negative is no hint.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(longestRetryAfter/time.Second) {
			return longestRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now).Round(time.Second), 0), longestRetryAfter)
}

func malformed(err error) *Error {
	return &Error{Kind: Malformed, Rule: ruleOf(err), text: "malformed reply: " + err.Error()}
}

func (x *exchange) tooLarge() *Error {
	return &Error{Kind: TooLarge,
		text: fmt.Sprintf("the reply is larger than the limit of %s (max_response)", size(x.endpoint.limit))}
}

// size writes a number of bytes, in whole units where there are some.
func size(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d bytes, %d MiB", n, n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d bytes, %d KiB", n, n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
