package federation

import (
	"crypto/tls"
	"errors"
	"os"
	"sync"
	"time"
)

// A certificate is read from its files again when they change, so that a
// renewal needs no restart.
type certificate struct {
	certFile, keyFile string

	mu       sync.Mutex
	modified time.Time // of the files that loaded was read from
	checked  time.Time
	loaded   *tls.Certificate
}

// certificateCheck is how long a certificate is used without looking at its files.
const certificateCheck = 10 * time.Second

// get implements tls.Config.GetCertificate. A renewal that cannot be read keeps
// the certificate before it in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded != nil && time.Since(c.checked) < certificateCheck {
		return c.loaded, nil
	}
	c.checked = time.Now()
	cert, errCert := os.Stat(c.certFile)
	key, errKey := os.Stat(c.keyFile)
	if err := errors.Join(errCert, errKey); err != nil {
		return c.loaded, c.unless(err)
	}
	newest := cert.ModTime()
	if key.ModTime().After(newest) {
		newest = key.ModTime()
	}
	if c.loaded != nil && newest.Equal(c.modified) {
		return c.loaded, nil
	}
	fresh, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return c.loaded, c.unless(err)
	}
	c.loaded, c.modified = &fresh, newest
	return c.loaded, nil
}

// unless is err as long as there is nothing to fall back on.
func (c *certificate) unless(err error) error {
	if c.loaded != nil {
		return nil
	}
	return err
}
