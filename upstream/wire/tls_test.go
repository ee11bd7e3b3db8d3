package wire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// An authority is a private CA with a certificate for 127.0.0.1, which serves
// as a client certificate too.
type authority struct {
	file      string // PEM of the CA
	cert, key string // PEM files of the certificate
	server    tls.Certificate
	pool      *x509.CertPool
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a private authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	a := authority{cert: write("cert.pem", "CERTIFICATE", der), key: write("key.pem", "EC PRIVATE KEY", keyDER), pool: x509.NewCertPool()}
	a.file = a.cert
	a.server = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(leaf)
	return a
}

// serveTLS answers over TLS as config says.
func serveTLS(t *testing.T, config *tls.Config) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, response(idPattern.FindStringSubmatch(string(sent))[1], "{}"))
	}))
	server.Config.ErrorLog = quiet
	server.TLS = config
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func TestTLS(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	certificates := []tls.Certificate{a.server}
	plain := &tls.Config{Certificates: certificates}
	mutual := &tls.Config{Certificates: certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool}
	tests := []struct {
		name   string
		server *tls.Config
		client TLSOptions
		want   Kind
	}{
		{"private authority", plain, TLSOptions{CAFile: a.file}, 0},
		{"unknown authority", plain, TLSOptions{}, Transport},
		{"other authority", plain, TLSOptions{CAFile: other.file}, Transport},
		{"TLS 1.1", &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, TLSOptions{CAFile: a.file}, Transport},
		{"TLS 1.2", &tls.Config{Certificates: certificates, MaxVersion: tls.VersionTLS12}, TLSOptions{CAFile: a.file}, 0},
		{"client certificate", mutual, TLSOptions{CAFile: a.file, ClientCert: a.cert, ClientKey: a.key}, 0},
		{"no client certificate", mutual, TLSOptions{CAFile: a.file}, Transport},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := endpoint(t, EndpointOptions{URL: serveTLS(t, test.server.Clone()), TLS: test.client})
			defer e.CloseIdle()
			_, failure := do(t, e, Request{Method: "initialize", Once: true})
			if test.want == 0 && failure != nil || test.want != 0 && (failure == nil || failure.Kind != test.want) {
				t.Errorf("got %v, want %s", failure, test.want)
			}
		})
	}
}

func TestBadTLSOptions(t *testing.T) {
	a := newAuthority(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]TLSOptions{
		"ca_file: open":                        {CAFile: empty + ".missing"},
		"holds no PEM certificate":             {CAFile: empty},
		"client_cert and client_key belong":    {ClientCert: a.cert},
		"client_key belong together; set both": {ClientKey: a.key},
		"client_cert ":                         {ClientCert: empty, ClientKey: a.key},
	} {
		_, err := NewEndpoint(EndpointOptions{URL: "https://example.org", Network: loopbackNetwork(t), TLS: o})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
		if _, err := loopbackNetwork(t).HTTPClient(o); err == nil {
			t.Errorf("%+v: HTTPClient accepts it", o)
		}
	}
}

// A server that never finishes the handshake holds the call until its budget is
// spent, and no dial goes on after that.
func TestHandshakeEndsWithTheBudget(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	before := runtime.NumGoroutine()
	e := endpoint(t, EndpointOptions{URL: "https://" + l.Addr().String()})
	start := time.Now()
	for range 5 {
		_, failure := doFor(t, 50*time.Millisecond, e, Request{Method: "initialize", Once: true})
		wantKind(t, failure, Deadline)
		if failure.Wrote {
			t.Error("nothing was sent, and the error says that something may have been")
		}
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("five budgets of 50 ms took %s", took)
	}
	if !settles(before) {
		t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}
