// Attack is a bad neighbourhood for a gateway, to measure others in: slow and
// idle connections, bodies at the cap, deep JSON and refused logins, all at once
// until it is interrupted. What it does is bounded in rate, so that it measures
// how much of the gateway's time and memory a stranger can take, and not how much
// of this machine's the stranger itself takes.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	slowClients = 200 // each sends a byte a second
	idleClients = 1000
	// bodyCap is what the gateway takes at most, and what is sent.
	bodyCap   = 2 << 20
	bodyEvery = time.Second
	deepEvery = 20 * time.Millisecond
	loginRate = 5 * time.Millisecond
)

func main() {
	endpoint := flag.String("url", "http://127.0.0.1:8620/mcp", "endpoint to attack")
	token := flag.String("token", "", "token of a caller, for what only callers can do: bodies at the cap and deep JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := attack(ctx, *endpoint, *token); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1)
	}
}

// An attacker is what all that goes on at once has in common.
type attacker struct {
	ctx      context.Context
	endpoint string
	address  string
	token    string
	client   *http.Client
	work     sync.WaitGroup
	counts   [5]atomic.Int64 // slow, idle, bodies, deep, logins
}

func attack(ctx context.Context, endpoint, token string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	a := &attacker{ctx: ctx, endpoint: endpoint, address: u.Host, token: token, client: &http.Client{Timeout: 10 * time.Second}}
	for range slowClients {
		a.work.Go(a.slow)
	}
	for range idleClients {
		a.work.Go(a.idle)
	}
	large := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nobody","arguments":{"text":"` + strings.Repeat("x", bodyCap-200) + `"}}}`)
	deep := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nobody","arguments":` + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + `}}`)
	a.work.Go(func() { a.every(bodyEvery, &a.counts[2], func() { a.post(a.token, large) }) })
	a.work.Go(func() { a.every(deepEvery, &a.counts[3], func() { a.post(a.token, deep) }) })
	a.work.Go(func() {
		a.every(loginRate, &a.counts[4], func() { a.post(guess(), []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)) })
	})
	a.work.Wait()
	fmt.Printf("slow connections %d, idle connections %d, bodies at the cap %d, deep %d, refused logins %d\n",
		a.counts[0].Load(), a.counts[1].Load(), a.counts[2].Load(), a.counts[3].Load(), a.counts[4].Load())
	return nil
}

// connected runs f on one connection after the other until the attack ends.
func (a *attacker) connected(count *atomic.Int64, f func(net.Conn)) {
	for a.ctx.Err() == nil {
		conn, err := (&net.Dialer{}).DialContext(a.ctx, "tcp", a.address)
		if err != nil {
			a.pause(time.Second)
			continue
		}
		count.Add(1)
		stop := context.AfterFunc(a.ctx, func() { conn.Close() })
		f(conn)
		stop()
		conn.Close()
	}
}

// slow sends a request a byte a second until it is cut off.
func (a *attacker) slow() {
	request := "POST /mcp HTTP/1.1\r\nHost: " + a.address + "\r\nContent-Type: application/json\r\nX-Padding: " + strings.Repeat("x", 4096)
	a.connected(&a.counts[0], func(conn net.Conn) {
		for i := range len(request) {
			if _, err := io.WriteString(conn, request[i:i+1]); err != nil || !a.pause(time.Second) {
				return
			}
		}
	})
}

// idle says nothing.
func (a *attacker) idle() {
	a.connected(&a.counts[1], func(conn net.Conn) { io.Copy(io.Discard, conn) })
}

// every runs f at a rate.
func (a *attacker) every(pause time.Duration, count *atomic.Int64, f func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
			count.Add(1)
			f()
		}
	}
}

func (a *attacker) post(token string, body []byte) {
	req, err := http.NewRequestWithContext(a.ctx, http.MethodPost, a.endpoint, bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := a.client.Do(req)
	if err != nil {
		return // to be refused, in whatever way, is the point
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
}

func (a *attacker) pause(d time.Duration) bool {
	select {
	case <-a.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func guess() string {
	var b [24]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
