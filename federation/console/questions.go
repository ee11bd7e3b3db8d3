package console

import (
	"net/http"
	"strconv"
	"strings"

	"gatehouse/federation/control"
)

type questionCard struct {
	control.Approval
	Mine bool // whoever looks asked it, and so cannot decide it
}

// A messageLine is one line of a question. Together they are its text, byte for byte.
type messageLine struct {
	Text     string
	Argument bool // it shows what the caller sends, and not what we say
}

// Lines are the question's lines. The gate begins each line of the arguments
// with a mark, so that none can pass for ours; on a narrow screen, where lines
// break once more, the page keeps what belongs to one line behind one border.
func (q questionCard) Lines() (out []messageLine) {
	for line := range strings.Lines(q.Message) {
		out = append(out, messageLine{line, strings.HasPrefix(line, "|") || strings.HasPrefix(line, "\\")})
	}
	return out
}

func showQuestions(v *visit) error {
	open, err := v.api.Approvals(v.r.Context())
	if err != nil {
		return err
	}
	cards := make([]questionCard, len(open))
	for i, q := range open {
		cards[i] = questionCard{q, q.Caller == string(v.who.Name)}
	}
	v.render(http.StatusOK, "questions", "Questions", cards)
	return nil
}

// decide answers one question in the name of whoever is signed in.
func decide(v *visit) error {
	number, err := strconv.ParseUint(v.r.PathValue("number"), 10, 64)
	if err != nil {
		return errNoPage
	}
	var approve bool
	switch v.r.PostForm.Get("decision") {
	case "approve":
		approve = true
	case "deny":
	default: // nothing that is not exactly one of the two decides anything
		return errBadForm
	}
	err = v.api.Decide(v.r.Context(), number, approve)
	said := "denied"
	if approve {
		said = "approved"
	}
	return v.back("/console/questions", err, "Question %d is %s. It is on record as decided by %s.", number, said, v.who.Name)
}
