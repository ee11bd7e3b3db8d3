package federation

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gatehouse/federation/config"
	"gatehouse/upstream/upstreamtest"
)

// An authority issues certificates for 127.0.0.1.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	file string
	last int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), pool: x509.NewCertPool()}
	a.key = a.newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "private authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	a.file = filepath.Join(a.dir, "ca.pem")
	a.write(a.file, "CERTIFICATE", der)
	a.last = 1
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) write(path, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// issue writes a certificate and its key into the files of that name and
// returns its serial number.
func (a *authority) issue(name string) (cert, key string, serial int64) {
	a.t.Helper()
	a.last++
	private := a.newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(a.last), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	a.write(cert, "CERTIFICATE", der)
	a.write(key, "PRIVATE KEY", secret)
	return cert, key, a.last
}

// The certificate is read again when its files change; one that cannot be read
// leaves the one before in use.
func TestCertificateIsReadAgain(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile, first := a.issue("gate")
	c := &certificate{certFile: certFile, keyFile: keyFile}
	serial := func() int64 {
		t.Helper()
		got, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(got.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.Int64()
	}
	// due makes the next look at the files due, and the files newer than before.
	due := func() {
		t.Helper()
		c.checked = time.Time{}
		later := c.modified.Add(time.Second)
		for _, f := range []string{certFile, keyFile} {
			if err := os.Chtimes(f, later, later); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}
	if got := serial(); got != first {
		t.Fatalf("certificate %d, want %d", got, first)
	}
	_, _, second := a.issue("gate")
	if got := serial(); got != first {
		t.Error("the files are looked at on every handshake")
	}
	due()
	if got := serial(); got != second {
		t.Errorf("certificate %d after the renewal, want %d", got, second)
	}
	if err := os.WriteFile(certFile, []byte("half written"), 0o600); err != nil {
		t.Fatal(err)
	}
	due()
	if got := serial(); got != second {
		t.Errorf("certificate %d while the renewal is broken", got)
	}
	_, _, third := a.issue("gate")
	due()
	if got := serial(); got != third {
		t.Errorf("certificate %d after it was mended, want %d", got, third)
	}
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	due()
	if got := serial(); got != third {
		t.Errorf("certificate %d without a key file", got)
	}
	missing := &certificate{certFile: certFile + ".missing", keyFile: keyFile}
	if _, err := missing.get(nil); err == nil {
		t.Error("no certificate is no error")
	}
}

// serveTLS serves a gateway on a real listener with [listen.tls].
func serveTLS(t *testing.T, file string, dir string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg, problems := config.Parse(filepath.Join(dir, "gatehouse.toml"), []byte(file))
	if cfg == nil {
		t.Fatal(problems)
	}
	g, err := Open(t.Context(), cfg, Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return l.Addr().String()
}

func TestListenTLS(t *testing.T) {
	a := newAuthority(t)
	certFile, keyFile, first := a.issue("gate")
	address := serveTLS(t, fmt.Sprintf("[listen]\naddress = \"127.0.0.1:8620\"\n[listen.tls]\ncert = %q\nkey = %q\n", certFile, keyFile), t.TempDir())
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS10, MaxVersion: version})
		if (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			if got := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != first {
				t.Errorf("certificate %d", got)
			}
			conn.Close()
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("https://" + address + "/healthz")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	if resp, err := http.Get("http://" + address + "/healthz"); err == nil {
		if resp.StatusCode == http.StatusOK {
			t.Error("answered in the clear")
		}
		resp.Body.Close()
	}
}

// An upstream behind a private authority that wants a certificate of ours.
func TestUpstreamTLS(t *testing.T) {
	a := newAuthority(t)
	serverCert, serverKey, _ := a.issue("upstream")
	clientCert, clientKey, _ := a.issue("gatehouse")
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	up := httptest.NewUnstartedServer(upstreamtest.New(upstreamtest.Profile{Modern: true}))
	up.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool}
	up.Config.ErrorLog = log.New(io.Discard, "", 0)
	up.StartTLS()
	t.Cleanup(up.Close)
	for name, test := range map[string]struct {
		keys string
		good bool
	}{
		"both":           {fmt.Sprintf("ca_file = %q\nclient_cert = %q\nclient_key = %q", a.file, clientCert, clientKey), true},
		"no certificate": {fmt.Sprintf("ca_file = %q", a.file), false},
		"no authority":   {fmt.Sprintf("client_cert = %q\nclient_key = %q", clientCert, clientKey), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rig{t: t, tokens: map[string]string{}, dir: t.TempDir()}
			r.open(fmt.Sprintf("[listen]\naddress = \"127.0.0.1:8620\"\n[network]\nprivate_hosts = [\"127.0.0.1\"]\n[operation]\ntimeout = \"5s\"\n[[server]]\nid = \"up\"\nurl = %q\ndata_class = \"source_code\"\n%s\n", up.URL+"/mcp", test.keys))
			if _, err := r.g.Test(t.Context(), "up"); (err == nil) != test.good {
				t.Errorf("%v", err)
			}
		})
	}
}
