package wire

import (
	"errors"
	"fmt"

	"gatehouse/gate/rawjson"
)

// A Rule names the rule that a malformed reply breaks, for whoever has to tell
// the server's author. Error says the same in words that may change.
type Rule string

// The rules that make a reply malformed.
const (
	RuleJSON     Rule = "json"            // one JSON value with nothing before or after it
	RuleUTF8     Rule = "utf8"            // JSON is UTF-8
	RuleKeys     Rule = "duplicate_keys"  // no object says a key twice
	RuleKeyCase  Rule = "key_case"        // no key differs from one of the envelope's in letter case only
	RuleDepth    Rule = "depth"           // nesting is bounded
	RuleObject   Rule = "object"          // one message: no batch, no scalar, no null
	RuleKind     Rule = "kind"            // a response and nothing else
	RuleVersion  Rule = "jsonrpc"         // "jsonrpc" is "2.0"
	RuleID       Rule = "id"              // the request's id, as the same string
	RuleBranch   Rule = "result_or_error" // exactly one of the two
	RuleError    Rule = "error"           // an object with an integer code and a string message
	RuleResult   Rule = "result"          // an object
	RuleContent  Rule = "content"         // an array of objects
	RuleResponse Rule = "response"        // a request is answered
	RuleOnce     Rule = "one_response"    // and only once
)

// A breach is why a reply is malformed.
type breach struct {
	rule Rule
	text string
}

func (b *breach) Error() string { return b.text }

func breaks(rule Rule, format string, args ...any) error {
	return &breach{rule, fmt.Sprintf(format, args...)}
}

// ruleOf names the rule behind an error of the parser.
func ruleOf(err error) Rule {
	if b, ok := errors.AsType[*breach](err); ok {
		return b.rule
	}
	strict, ok := errors.AsType[*rawjson.Error](err)
	if !ok {
		return RuleJSON
	}
	switch strict.Kind {
	case rawjson.DuplicateKey:
		return RuleKeys
	case rawjson.TooDeep:
		return RuleDepth
	case rawjson.NotUTF8:
		return RuleUTF8
	}
	return RuleJSON
}
