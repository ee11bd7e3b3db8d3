package config

import (
	"math"
	"strconv"
	"strings"
	"time"

	"gatehouse/upstream/credential"
)

// text is a string.
type text struct {
	field
	value string
}

func (t *text) decode(raw any) string {
	s, ok := raw.(string)
	if !ok {
		return "must be a string, not " + kindOf(raw)
	}
	t.value = s
	return ""
}

// flag is true or false; neither 0 nor "false" is taken for one.
type flag struct {
	field
	value bool
}

func (f *flag) decode(raw any) string {
	v, ok := raw.(bool)
	if !ok {
		return "must be true or false, not " + kindOf(raw)
	}
	f.value = v
	return ""
}

// number is an integer from 0 to a million, which is more than any limit of
// ours can mean.
type number struct {
	field
	value int
}

const maxNumber = 1_000_000

func (n *number) decode(raw any) string {
	v, ok := raw.(int64)
	switch {
	case !ok:
		return "must be an integer, not " + kindOf(raw)
	case v < 0 || v > maxNumber:
		return "is " + strconv.FormatInt(v, 10) + " (want 0 to " + strconv.Itoa(maxNumber) + ")"
	}
	n.value = int(v)
	return ""
}

// words is a list of strings; an empty list is something else than no list.
type words struct {
	field
	value []string
}

func (w *words) decode(raw any) string {
	list, ok := raw.([]any)
	if !ok {
		if tables, isTables := raw.([]map[string]any); !isTables || len(tables) > 0 {
			return "must be a list of strings, not " + kindOf(raw)
		}
	}
	w.value = []string{}
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return "must hold strings only, not " + kindOf(e)
		}
		w.value = append(w.value, s)
	}
	return ""
}

// wordOrWords is a string, or a list of strings.
type wordOrWords struct{ words }

func (w *wordOrWords) decode(raw any) string {
	if s, ok := raw.(string); ok {
		w.value = []string{s}
		return ""
	}
	if _, ok := raw.([]any); !ok {
		return "must be a string or a list of strings, not " + kindOf(raw)
	}
	return w.words.decode(raw)
}

// span is a duration. Its bounds are the builder's business.
type span struct {
	field
	value time.Duration
}

const wantSpan = `must be a duration in quotes, like "20s", "5m" or "90d"`

func (s *span) decode(raw any) string {
	t, ok := raw.(string)
	if !ok {
		return wantSpan + ", not " + kindOf(raw)
	}
	v, ok := parseSpan(t)
	if !ok {
		return wantSpan + ", not " + strconv.Quote(clip(t))
	}
	s.value = v
	return ""
}

// parseSpan is time.ParseDuration with whole days.
func parseSpan(s string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		const day = 24 * time.Hour
		if err != nil || n > int64(math.MaxInt64/day) || n < -int64(math.MaxInt64/day) {
			return 0, false
		}
		return time.Duration(n) * day, true
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && strings.ContainsAny(s, "hmsuµn")
}

// size is a number of bytes.
type size struct {
	field
	value int64
}

const wantSize = `must be a size in quotes, like "512KiB" or "2MiB"`

func (s *size) decode(raw any) string {
	t, ok := raw.(string)
	if !ok {
		return wantSize + ", not " + kindOf(raw)
	}
	for _, unit := range []struct {
		suffix string
		bytes  int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"B", 1}} {
		digits, ok := strings.CutSuffix(t, unit.suffix)
		if n, err := strconv.ParseUint(digits, 10, 32); ok && err == nil {
			s.value = int64(n) * unit.bytes
			return ""
		}
	}
	return wantSize + ", not " + strconv.Quote(clip(t))
}

// reference names a secret. What is no reference is never repeated.
type reference struct {
	field
	value credential.Reference
}

func (r *reference) decode(raw any) string {
	s, ok := raw.(string)
	if !ok {
		return `must be a reference like "env:NAME", not ` + kindOf(raw)
	}
	v, err := credential.ParseReference(s)
	if err != nil {
		return "is no reference: " + err.Error()
	}
	r.value = v
	return ""
}

// secretText is a string that may be a secret by mistake: it is parsed by the
// builder and never quoted.
type secretText struct{ text }

var (
	_ decodable = (*text)(nil)
	_ decodable = (*flag)(nil)
	_ decodable = (*number)(nil)
	_ decodable = (*words)(nil)
	_ decodable = (*wordOrWords)(nil)
	_ decodable = (*span)(nil)
	_ decodable = (*size)(nil)
	_ decodable = (*reference)(nil)
	_ decodable = (*secretText)(nil)
)
