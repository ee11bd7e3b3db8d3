package cli

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"

	"gatehouse/federation/config"
	"gatehouse/gate/ledger"
	"gatehouse/upstream/credential"
)

// evidence names the files of what is known about the record from elsewhere.
type evidence struct {
	copy string
	keys []string
}

// maxKey bounds a key file.
const maxKey = 64 << 10

func (a *app) verifyLedger(ctx context.Context, from evidence) error {
	cfg, err := a.load(false)
	if err != nil {
		return err
	}
	known := ledger.Evidence{}
	if known.Keys, err = a.publicKeys(ctx, cfg, from.keys); err != nil {
		return err
	}
	if from.copy != "" {
		file, err := os.Open(from.copy)
		if err != nil {
			return fmt.Errorf("--against: %w", err)
		}
		defer file.Close()
		known.Copy = file
	}
	report, err := ledger.Compare(cfg.LedgerDir(), known)
	if err != nil {
		return err
	}
	report.Unsettled = list(report.Unsettled)
	if a.json {
		if err := a.printJSON(report); err != nil {
			return err
		}
	}
	switch {
	case report.Bad != nil:
		if !a.json {
			fmt.Fprintf(a.stderr, "gatehouse: %s\n", report.Bad)
		}
		return errSilent
	case len(known.Keys) > 0 && report.Signed == 0 && report.Entries > 0:
		// Whoever makes the record anew has no key, and would leave them out.
		return errors.New("the chain is whole, and no checkpoint in it is signed: nothing shows that it was not made anew; " +
			"a daemon that is started with [audit] signing_key signs one at once")
	}
	if !a.json {
		a.printVerdict(report, from.copy)
	}
	return nil
}

func (a *app) printVerdict(report ledger.Report, copied string) {
	a.printf("%s, %d to %d: the chain is whole\n", entries(report.Entries), report.First, report.Last)
	if report.Torn != nil {
		a.printf("%s\n", report.Torn)
	}
	if report.Signed > 0 {
		a.printf("signed up to %d\n", report.Signed)
	}
	if copied != "" {
		a.printf("every entry of %s is here unchanged\n", oneLine(copied))
	}
	for _, number := range report.Unsettled {
		a.printf("call %d has no outcome: it is under way, or the process that made it is gone\n", number)
	}
}

// publicKeys are those of the files, or else that of the configured signer.
func (a *app) publicKeys(ctx context.Context, cfg *config.Config, files []string) (keys []ed25519.PublicKey, err error) {
	for _, name := range files {
		text, err := readLimited(name, maxKey)
		if err != nil {
			return nil, fmt.Errorf("--key: %w", err)
		}
		key, err := ledger.ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("--key: %s: %w", name, err)
		}
		keys = append(keys, key)
	}
	if len(files) > 0 || cfg.Audit.SigningKey.IsZero() {
		return keys, nil
	}
	secret, err := (&credential.Resolver{}).ResolveText(ctx, cfg.Audit.SigningKey)
	if err != nil {
		return nil, fmt.Errorf("[audit] signing_key: %w; the public key will do: --key FILE", err)
	}
	key, err := ledger.ParseKey(secret.Bytes())
	if err != nil {
		return nil, fmt.Errorf("[audit] signing_key: %s: %w", cfg.Audit.SigningKey, err)
	}
	return []ed25519.PublicKey{key}, nil
}

// readLimited reads a file of at most so many bytes.
func readLimited(name string, limit int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit))
}
