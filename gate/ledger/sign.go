package ledger

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"time"

	"gatehouse/gate"
)

// signEvery is how often a checkpoint is signed while there is something new.
const signEvery = time.Hour

// Evidence is what is known about a ledger from elsewhere. A chain by itself only
// shows that nobody edited a part of it; who can write the files can compute it
// anew. Evidence shows that the past is still the same.
type Evidence struct {
	// Keys are those whose signatures count; there are several after a change of
	// keys. Without any, signatures are not looked at.
	Keys []ed25519.PublicKey
	// Copy is lines that were copied or exported before: each entry in it has to
	// be in the ledger, unless retention removed it.
	Copy io.Reader
}

// signedText is what a checkpoint's signature is over.
func signedText(through uint64, hash gate.Digest) []byte {
	return fmt.Appendf(nil, "gatehouse ledger checkpoint\n%d %s\n", through, hash)
}

// sign puts a signed checkpoint on record for the last durable entry, if there
// are entries that none vouches for yet.
func (l *Ledger) sign() {
	if l.signer == nil || l.at != l.synced || l.at.number <= l.signedUpTo || l.Health() != nil {
		return
	}
	through, hash := l.at.number, l.at.hash
	// It speaks of the entry before it. One that could not be written now would
	// later follow another, so it is made anew instead.
	l.commit([]*request{{probe: true, entries: []gate.Entry{{
		Kind: gate.KindCheckpoint, Reason: "signed", Through: through, ResultDigest: hash,
		Signature: base64.StdEncoding.EncodeToString(ed25519.Sign(l.signer, signedText(through, hash))),
	}}}}, true)
	if l.at.number > through {
		l.signed, l.signedUpTo = l.now(), l.at.number
	}
}

// signature checks a checkpoint that is signed: by whom, and that it speaks of
// the entry it follows.
func (v *verifier) signature(e gate.Entry, follows head) {
	if len(v.evidence.Keys) == 0 || e.Signature == "" {
		return
	}
	signature, err := base64.StdEncoding.DecodeString(e.Signature)
	text := signedText(e.Through, e.ResultDigest)
	signed := err == nil && slices.ContainsFunc(v.evidence.Keys, func(k ed25519.PublicKey) bool { return ed25519.Verify(k, text, signature) })
	switch {
	case !signed:
		v.bad(e.Number, "the checkpoint is not signed with a known key")
	case follows != head{e.Through, e.ResultDigest}:
		v.bad(e.Number, fmt.Sprintf("the checkpoint was signed for another entry than the one it follows, for record %d", e.Through))
	default:
		v.report.Signed = e.Through
	}
}

// readCopy reads the evidence. Lines that are no entries make it worthless.
func (v *verifier) readCopy() error {
	if v.evidence.Copy == nil {
		return nil
	}
	v.copied = make(map[uint64]gate.Digest)
	for lines, n := newLineReader(v.evidence.Copy), 1; ; n++ {
		line, err := lines.next()
		if len(line) > 0 {
			k, ok := linkOf(line)
			if !ok || !intact(line) {
				return fmt.Errorf("the copy is no evidence: line %d is not an entry as it was written", n)
			}
			v.copied[k.number] = k.hash
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the copy cannot be read: %w", err)
		}
	}
}

func (v *verifier) compare(k link) {
	hash, ok := v.copied[k.number]
	if ok && hash != k.hash {
		v.bad(k.number, "is another entry in the copy")
	}
	delete(v.copied, k.number)
}

// unmet finds entries of the copy that are neither here nor removed by retention.
func (v *verifier) unmet() {
	missing := uint64(0)
	for number := range v.copied {
		if number >= v.report.First && (missing == 0 || number < missing) {
			missing = number
		}
	}
	if missing > 0 {
		v.bad(missing, "is in the copy and not here")
	}
}
