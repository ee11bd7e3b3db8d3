package gate

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"time"
)

// A binding is everything that an approval is for. Two calls with the same
// binding are the same call to a person who was asked.
type binding struct {
	session    Digest // of the session key
	caller     Digest // name and zone
	place      Digest // server, origin, names and class
	definition Digest
	arguments  Digest // of the raw bytes: another spelling is another question
}

// binding computes what r would be bound to. r has a tool and a caller.
func (r *request) binding() binding {
	t, c := r.Tool, r.caller
	return binding{
		session: digestParts("session", r.call.SessionKey),
		caller:  digestParts("caller", string(c.Name), c.Zone.String()),
		place: digestParts("place", string(t.Server), t.ServerName, t.Origin, string(t.Name),
			string(t.Remote), t.Class.String()),
		definition: t.Definition,
		arguments:  DigestOf(r.raw),
	}
}

// digestParts digests strings so that no two lists of them look alike.
func digestParts(parts ...string) (d Digest) {
	h := sha256.New()
	for _, p := range parts {
		writePart(h, p)
	}
	h.Sum(d[:0])
	return d
}

func writePart(h hash.Hash, p string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(p)))
	h.Write(n[:])
	h.Write([]byte(p))
}

// differs says what of want is no longer so, for operators; "" when all is.
func (b binding) differs(now binding) string {
	switch {
	case b.caller != now.caller:
		return "the state belongs to another caller"
	case b.session != now.session:
		return "the state belongs to another session"
	case b.place != now.place:
		return "the state is for another tool, or its server's table changed after the question"
	case b.definition != now.definition:
		return "the tool's definition changed after the question"
	case b.arguments != now.arguments:
		return "the arguments are not the ones that were asked about"
	}
	return ""
}

// A sealed is what a state says, once it is opened.
type sealed struct {
	question uint64
	until    time.Time
	channel  Channel
	binding
}

// The layout of a state: version, key id, nonce, then the sealed part. Version
// and key id are authenticated with it.
const (
	stateVersion = 1
	headerSize   = 1 + 4
	sealedSize   = 8 + 8 + 1 + 5*sha256.Size
)

var errState = errors.New("the state was not sealed here")

// seal makes the text that has to come back with the answer.
func (g *Gate) seal(s sealed) (string, error) {
	id, key := g.keys.Current()
	aead, err := newAEAD(key)
	if err != nil {
		return "", err
	}
	out := make([]byte, headerSize+aead.NonceSize(), headerSize+aead.NonceSize()+sealedSize+aead.Overhead())
	out[0] = stateVersion
	binary.BigEndian.PutUint32(out[1:], id)
	nonce := out[headerSize:]
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	plain := make([]byte, 0, sealedSize)
	plain = binary.BigEndian.AppendUint64(plain, s.question)
	plain = binary.BigEndian.AppendUint64(plain, uint64(s.until.UnixMilli()))
	plain = append(plain, byte(s.channel))
	for _, d := range s.digests() {
		plain = append(plain, d[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(out, nonce, plain, out[:headerSize])), nil
}

// unseal opens a state. Anything that some key of the ring did not seal, byte
// for byte, is an error.
func (g *Gate) unseal(text string) (s sealed, err error) {
	in, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(in) < headerSize || in[0] != stateVersion {
		return s, errState
	}
	key, ok := g.keys.Key(binary.BigEndian.Uint32(in[1:]))
	if !ok {
		return s, errors.New("the state was sealed with a key that is no longer in the ring")
	}
	aead, err := newAEAD(key)
	if err != nil || len(in) != headerSize+aead.NonceSize()+sealedSize+aead.Overhead() {
		return s, errState
	}
	nonce, box := in[headerSize:headerSize+aead.NonceSize()], in[headerSize+aead.NonceSize():]
	plain, err := aead.Open(nil, nonce, box, in[:headerSize])
	if err != nil {
		return s, errState
	}
	s.question = binary.BigEndian.Uint64(plain)
	s.until = time.UnixMilli(int64(binary.BigEndian.Uint64(plain[8:]))).UTC()
	s.channel = Channel(plain[16])
	for i, d := range s.digests() {
		copy(d[:], plain[17+i*sha256.Size:])
	}
	return s, nil
}

// digests lists the bound digests in the order in which they are sealed.
func (b *binding) digests() []*Digest {
	return []*Digest{&b.session, &b.caller, &b.place, &b.definition, &b.arguments}
}

func newAEAD(key [32]byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
