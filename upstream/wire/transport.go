package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	// maxHeader caps the response header.
	maxHeader = 64 << 10
	// warmConnections is how many idle connections to one host are kept, so that
	// a burst of callers does not pay for handshakes again and again.
	warmConnections = 256
	idleTimeout     = 90 * time.Second
	// clientTimeout bounds whole exchanges of HTTPClient for callers without a
	// deadline.
	clientTimeout = 30 * time.Second
)

// TLSOptions say how one server is met over TLS. Verification cannot be
// switched off.
type TLSOptions struct {
	CAFile     string // PEM; when set, these authorities are trusted instead of the system's
	ClientCert string // PEM file of a client certificate, with ClientKey
	ClientKey  string
}

func (o TLSOptions) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file: %q holds no PEM certificate", o.CAFile)
		}
	}
	if (o.ClientCert == "") != (o.ClientKey == "") {
		return nil, fmt.Errorf("client_cert and client_key belong together; set both or neither")
	}
	if o.ClientCert != "" {
		pair, err := tls.LoadX509KeyPair(o.ClientCert, o.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("client_cert %q: %w", o.ClientCert, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Transport makes a transport that vets every address it dials and keeps its
// connections warm. It takes no proxy from the environment, never asks for
// compression, and speaks HTTP/2 where a server offers it.
func (n *Network) Transport(o TLSOptions) (*http.Transport, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		DialContext: n.dialPlain,
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return n.dialTLS(ctx, network, addr, config)
		},
		TLSClientConfig:        config.Clone(), // for TLS inside a proxy's tunnel
		TLSHandshakeTimeout:    dialTimeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConnsPerHost:    warmConnections,
		IdleConnTimeout:        idleTimeout,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         8 << 10,
		WriteBufferSize:        8 << 10,
	}
	if n.proxy != nil {
		t.Proxy = n.proxyFor
	}
	return t, nil
}

// HTTPClient makes a client over Transport that never follows a redirect: the
// redirect is the response.
func (n *Network) HTTPClient(o TLSOptions) (*http.Client, error) {
	t, err := n.Transport(o)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       clientTimeout,
	}, nil
}
