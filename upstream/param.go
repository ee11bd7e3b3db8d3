package upstream

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
	"gatehouse/upstream/wire"
)

// setParamHeaders adds Mcp-Param-<name> for every bound argument that is there.
func setParamHeaders(h http.Header, bindings []gate.ParamHeader, arguments []byte) error {
	for _, b := range bindings {
		value, ok := argument(arguments, b.Path)
		if !ok || rawjson.IsNull(value) {
			continue
		}
		text, err := paramText(b.Type, value)
		if err != nil {
			return fmt.Errorf("argument %q: %w, so it cannot go into the header Mcp-Param-%s that the tool binds it to",
				strings.Join(b.Path, "."), err, b.Name)
		}
		h.Set("Mcp-Param-"+b.Name, wire.EncodeHeaderValue(text))
	}
	return nil
}

// argument follows a path of property names; what is not there is not sent.
func argument(object []byte, path []string) ([]byte, bool) {
	for _, name := range path {
		if !rawjson.IsObject(object) {
			return nil, false
		}
		members, err := rawjson.Object(object)
		if err != nil {
			return nil, false
		}
		var ok bool
		if object, ok = rawjson.Get(members, name); !ok {
			return nil, false
		}
	}
	return object, len(path) > 0
}

// maxExact is the largest integer that every JSON number holds exactly.
const maxExact = 1<<53 - 1

func paramText(kind string, value []byte) (string, error) {
	switch kind {
	case "string":
		if rawjson.IsString(value) {
			return rawjson.String(value)
		}
	case "boolean":
		if text := string(value); text == "true" || text == "false" {
			return text, nil
		}
	case "integer":
		if rawjson.IsNumber(value) {
			return integerText(string(value))
		}
	}
	return "", fmt.Errorf("the value is no %s", kind)
}

// integerText writes a number's value in plain digits: 1e2 and 100.0 are the
// integer 100.
func integerText(literal string) (string, error) {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxExact {
		return "", fmt.Errorf("the value is no integer within 2^53")
	}
	return strconv.FormatInt(int64(f), 10), nil
}
