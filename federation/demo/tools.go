package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// A run is a tool's work: the text for the model, and the same as data.
type run func(ctx context.Context, call mcp.CallToolRequest) (text string, data any, err error)

// tools are the demo's tools. Their schemas are written out, as most servers'
// are, rather than derived from Go types.
func tools(b *notebook) []server.ServerTool {
	return []server.ServerTool{
		tool("notes_search", "Finds notes whose title or text contains the given words.",
			`{"type":"object","properties":{"words":{"type":"string","description":"what to look for","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":50,"default":10}},"required":["words"],"additionalProperties":false}`,
			reads, b.runSearch),
		tool("notes_list", "Lists all notes.",
			`{"type":"object","properties":{"limit":{"type":"integer","minimum":1,"maximum":50,"default":10}},"additionalProperties":false}`,
			reads, b.runSearch),
		tool("notes_read", "Reads one note.",
			`{"type":"object","properties":{"id":{"type":"integer","minimum":1}},"required":["id"],"additionalProperties":false}`,
			reads, b.runRead),
		tool("notes_add", "Adds a note.",
			`{"type":"object","properties":{"title":{"type":"string","minLength":1,"maxLength":200},"text":{"type":"string","maxLength":10000}},"required":["title"],"additionalProperties":false}`,
			writes, b.runAdd),
		tool("notes_delete", "Deletes one note for good.",
			`{"type":"object","properties":{"id":{"type":"integer","minimum":1}},"required":["id"],"additionalProperties":false}`,
			writes, b.runDelete),
		tool("weather", "Tells the weather of a town. The town is real, the weather is made up.",
			`{"type":"object","properties":{"town":{"type":"string","minLength":1},"unit":{"enum":["celsius","fahrenheit"],"default":"celsius"}},"required":["town"],"additionalProperties":false}`,
			reads, runWeather),
		tool("echo", "Gives back what it is given.",
			`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"],"additionalProperties":false}`,
			reads, runEcho),
		tool("text_stats", "Counts the characters, words and lines of a text.",
			`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`,
			reads, runStats),
		tool("slow_count", "Counts to a number, slowly, and reports progress on the way.",
			`{"type":"object","properties":{"to":{"type":"integer","minimum":1,"maximum":100,"default":5},"delay_ms":{"type":"integer","minimum":0,"maximum":5000,"default":200}},"additionalProperties":false}`,
			reads, runCount),
		tool("big_number", "Answers with a number that does not fit into a double, or with the one it is given.",
			`{"type":"object","properties":{"number":{"type":"integer"}},"additionalProperties":false}`,
			reads, runBigNumber),
		tool("clock", "Tells the time, in UTC.",
			`{"type":"object","additionalProperties":false}`,
			reads, runClock),
		tool("simulate_failure", "Fails, to show what a tool's own failure looks like.",
			`{"type":"object","additionalProperties":false}`,
			reads, runFail),
	}
}

const (
	reads  = true
	writes = false
)

func tool(name, description, schema string, readOnly bool, f run) server.ServerTool {
	t := mcp.NewToolWithRawSchema(name, description, json.RawMessage(schema))
	t.Annotations.ReadOnlyHint = &readOnly
	return server.ServerTool{Tool: t, Handler: func(ctx context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, data, err := f(ctx, call)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		result := mcp.NewToolResultText(text)
		if data != nil {
			if result.RawStructuredContent, err = json.Marshal(data); err != nil {
				return nil, err
			}
		}
		return result, nil
	}}
}

// bind decodes the arguments into a struct that holds the defaults.
func bind[T any](call mcp.CallToolRequest, into *T) error {
	if len(call.Params.RawArguments) == 0 {
		return nil
	}
	if err := json.Unmarshal(call.Params.RawArguments, into); err != nil {
		return errors.New("the arguments do not fit the tool's schema")
	}
	return nil
}

func (b *notebook) runSearch(_ context.Context, call mcp.CallToolRequest) (string, any, error) {
	in := struct {
		Words string `json:"words"`
		Limit int    `json:"limit"`
	}{Limit: 10}
	if err := bind(call, &in); err != nil {
		return "", nil, err
	}
	found := b.search(in.Words, in.Limit)
	var text strings.Builder
	fmt.Fprintf(&text, "found %d", len(found))
	for _, n := range found {
		fmt.Fprintf(&text, "\n%d  %s: %s", n.ID, n.Title, n.Text)
	}
	return text.String(), map[string]any{"notes": found}, nil
}

func (b *notebook) runRead(_ context.Context, call mcp.CallToolRequest) (string, any, error) {
	var in struct{ ID int }
	if err := bind(call, &in); err != nil {
		return "", nil, err
	}
	n, err := b.read(in.ID)
	return n.Title + "\n\n" + n.Text, n, err
}

func (b *notebook) runAdd(_ context.Context, call mcp.CallToolRequest) (string, any, error) {
	var in struct{ Title, Text string }
	if err := bind(call, &in); err != nil {
		return "", nil, err
	}
	n, err := b.add(in.Title, in.Text)
	return fmt.Sprintf("added note %d, %q", n.ID, n.Title), n, err
}

func (b *notebook) runDelete(_ context.Context, call mcp.CallToolRequest) (string, any, error) {
	var in struct{ ID int }
	if err := bind(call, &in); err != nil {
		return "", nil, err
	}
	n, err := b.remove(in.ID)
	return fmt.Sprintf("deleted note %d, %q", n.ID, n.Title), n, err
}

// runWeather derives the weather from the town's name, so that it is the same
// every time one asks.
func runWeather(_ context.Context, call mcp.CallToolRequest) (string, any, error) {
	in := struct{ Town, Unit string }{Unit: "celsius"}
	if err := bind(call, &in); err != nil {
		return "", nil, err
	}
	h := fnv.New32a()
	h.Write([]byte(strings.ToLower(in.Town)))
	sky := []string{"sunny", "cloudy", "rain", "fog", "wind"}[h.Sum32()%5]
	degrees := int(h.Sum32()>>8%35) - 5
	if in.Unit == "fahrenheit" {
		degrees = degrees*9/5 + 32
	}
	return fmt.Sprintf("%s: %s, %d degrees %s", in.Town, sky, degrees, in.Unit),
		map[string]any{"town": in.Town, "sky": sky, "degrees": degrees, "unit": in.Unit}, nil
}

func runEcho(_ context.Context, call mcp.CallToolRequest) (string, any, error) {
	var in struct{ Message string }
	err := bind(call, &in)
	return in.Message, nil, err
}

func runStats(_ context.Context, call mcp.CallToolRequest) (string, any, error) {
	var in struct{ Text string }
	if err := bind(call, &in); err != nil {
		return "", nil, err
	}
	stats := struct {
		Characters int `json:"characters"`
		Words      int `json:"words"`
		Lines      int `json:"lines"`
	}{utf8.RuneCountInString(in.Text), len(strings.Fields(in.Text)), strings.Count(in.Text, "\n") + 1}
	return fmt.Sprintf("%d characters, %d words, %d lines", stats.Characters, stats.Words, stats.Lines), stats, nil
}

func runCount(ctx context.Context, call mcp.CallToolRequest) (string, any, error) {
	in := struct {
		To    int `json:"to"`
		Delay int `json:"delay_ms"`
	}{5, 200}
	if err := bind(call, &in); err != nil {
		return "", nil, err
	}
	for i := 1; i <= in.To; i++ {
		select {
		case <-time.After(time.Duration(in.Delay) * time.Millisecond):
		case <-ctx.Done():
			return "", nil, fmt.Errorf("stopped at %d", i-1)
		}
		progress(ctx, call, i, in.To)
	}
	return fmt.Sprintf("counted to %d", in.To), map[string]int{"counted": in.To}, nil
}

// progress tells a caller that asked for it how far the work is. One that
// cannot be told still gets the answer, which is what counts.
func progress(ctx context.Context, call mcp.CallToolRequest, done, total int) {
	if call.Params.Meta == nil || call.Params.Meta.ProgressToken == nil {
		return
	}
	_ = server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", map[string]any{
		"progressToken": call.Params.Meta.ProgressToken,
		"progress":      done,
		"total":         total,
		"message":       fmt.Sprintf("at %d", done),
	})
}

func runBigNumber(_ context.Context, call mcp.CallToolRequest) (string, any, error) {
	in := struct{ Number json.Number }{"9007199254740993"}
	if err := bind(call, &in); err != nil {
		return "", nil, err
	}
	return in.Number.String(), map[string]json.Number{"number": in.Number}, nil
}

func runClock(context.Context, mcp.CallToolRequest) (string, any, error) {
	now := time.Now().UTC().Format(time.RFC3339)
	return now, map[string]string{"time": now}, nil
}

func runFail(context.Context, mcp.CallToolRequest) (string, any, error) {
	return "", nil, errors.New("this tool always fails")
}
