package catalog

import (
	"strings"
	"unicode"
)

// A word is a word as it was written, in lower case, and its stem.
type word struct{ text, stem string }

// form is what the index keeps the text itself under, apart from all stems.
func (w word) form() string { return "=" + w.text }

func (w word) forms() [2]string { return [2]string{w.stem, w.form()} }

func compareWords(a, b word) int { return strings.Compare(a.text, b.text) }

// wordsOf splits text into its words. Names are split where they
// are joined: at underscores, hyphens, dots, and where camel case turns.
func wordsOf(text string) []word {
	var out []word
	var letters []rune
	flush := func() {
		if w := strings.ToLower(string(letters)); len(letters) > 0 && !stopWords[w] {
			out = append(out, word{w, stem(w)})
		}
		letters = letters[:0]
	}
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && turns(runes, i):
			flush()
		}
		if len(letters) < 40 {
			letters = append(letters, r)
		}
	}
	flush()
	return out
}

// turns reports whether a new word begins with the capital at i: "getHTTPPage"
// is get, HTTP, page. A name like GitHub in running text stays one word, being
// one capital after a short beginning would split it from how people write it.
func turns(r []rune, i int) bool {
	if unicode.IsLower(r[i-1]) {
		return !properName(r, i)
	}
	return unicode.IsUpper(r[i-1]) && i+1 < len(r) && unicode.IsLower(r[i+1])
}

// properName reports whether the word around i begins with a capital, as names
// of products do and names of tools seldom do.
func properName(r []rune, i int) bool {
	for i > 0 && unicode.IsLetter(r[i-1]) {
		i--
	}
	return unicode.IsUpper(r[i])
}

var stopWords = keywords("a", "an", "the", "of", "in", "on", "to", "for", "from", "with", "and", "or", "is", "are", "be", "it", "its",
	"this", "that", "there", "me", "my", "i", "do", "does", "how", "what", "which", "who", "will", "all", "some", "one", "by", "at",
	"into", "as", "you", "your", "can", "please", "not", "no", "when", "use", "using", "b", "s")

// stem takes common endings away, so that "creating issues" meets "create
// issue". It only has to treat both sides alike, not to give words.
func stem(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 4 && (strings.HasSuffix(w, "sses") || strings.HasSuffix(w, "xes") || strings.HasSuffix(w, "ches") || strings.HasSuffix(w, "shes")):
		return w[:len(w)-2]
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	for _, ending := range []string{"ing", "ed"} {
		if base, ok := strings.CutSuffix(w, ending); ok && len(base) > 3 && strings.ContainsAny(base, "aeiouy") {
			if n := len(base); base[n-1] == base[n-2] && !strings.ContainsRune("lsz", rune(base[n-1])) {
				return base[:n-1]
			}
			w = base
			break
		}
	}
	if len(w) > 4 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

const (
	creatingWords = "create add new make insert set post register"
	deletingWords = "delete remove drop erase destroy"
	updatingWords = "update edit change modify rename alter turn"
)

var (
	deleting = stems(deletingWords)
	changing = stems(creatingWords + " open file send " + deletingWords + " " + updatingWords)
)

func stems(words string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(words) {
		set[stem(w)] = true
	}
	return set
}

// akin are words that people use for one another when they ask for a tool.
var akin = func() map[string][]string {
	out := make(map[string][]string)
	for _, group := range []string{
		creatingWords + " open file",
		deletingWords,
		updatingWords,
		"list show all enumerate find browse",
		"get fetch read retrieve show look view detail",
		"search find query look",
		"send post deliver message",
		"merge join combine",
		"picture image photo draw",
		"file document",
		"rain weather forecast temperature",
		"sms text",
		"money currency",
		"call phone",
	} {
		var stems []string
		for _, w := range strings.Fields(group) {
			stems = append(stems, stem(w))
		}
		for _, a := range stems {
			for _, b := range stems {
				if a != b {
					out[a] = append(out[a], b)
				}
			}
		}
	}
	return out
}()
