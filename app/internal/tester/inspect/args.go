package inspect

import (
	"context"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A Pair is an argument as it stands on a command line: NAME=VALUE.
type Pair struct{ Name, Value string }

// Args are what a method is given. Each row of the table says which of them it takes.
type Args struct {
	Tool      string
	Arguments mcp.RawValue // an object, sent as it is; takes the place of Pairs
	Pairs     []Pair
	ToolMeta  map[string]mcp.RawValue
	// Fill makes the arguments of a tool where none are given, if it is not nil.
	Fill   func(ctx context.Context, schema mcp.RawValue) (mcp.RawValue, error)
	AsTask bool // the task is the result, not what comes of it

	URI, Cursor string

	Prompt     string
	PromptArgs []Pair

	Level mcp.LogLevel

	RefType, Ref, ArgName, ArgValue string // of a completion
	Context                         []Pair

	TaskID    string
	Responses mcp.RawValue // an object by the keys of questions

	Roots []mcp.Root // to set; nil is none given

	Count int // of lines after which watching ends; 0 is without end

	Strict         bool // look at the schemas of tools
	AppInfo        bool // of tools instead of listing or calling them
	WithAppInfo    bool // beside the result of a call
	Verify         bool // of skills: reports instead of entries
	RequireDigests bool
	MaxSkills      int   // that one run reads
	MaxSkillBytes  int64 // that one run reads

	// Emit takes the lines of methods that give several values, as they come.
	Emit func(line mcp.RawValue) error
}

// ParsePair splits NAME=VALUE.
func ParsePair(text string) (Pair, bool) {
	name, value, found := strings.Cut(text, "=")
	return Pair{name, value}, found && name != ""
}

// valueOf reads a value of a command line: JSON if it is that, else text.
func valueOf(text string) mcp.RawValue {
	trimmed := strings.TrimSpace(text)
	if strictjson.Valid([]byte(trimmed)) == nil {
		return mcp.RawValue(trimmed)
	}
	return quoted(text)
}

// quoted is a text as JSON. What is not UTF-8 in it is replaced.
func quoted(text string) mcp.RawValue {
	raw, err := strictjson.Marshal(strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil {
		return mcp.RawValue(`""`) // a valid text can be encoded
	}
	return raw
}

// Meta makes members of _meta of pairs.
func Meta(pairs []Pair) map[string]mcp.RawValue {
	if len(pairs) == 0 {
		return nil
	}
	m := make(map[string]mcp.RawValue, len(pairs))
	for _, p := range pairs {
		m[p.Name] = valueOf(p.Value)
	}
	return m
}

// arguments are those of a tool: as they were given, or of pairs, by the types of its
// schema where a text can be one of them.
func (a *Args) arguments(ctx context.Context, schema mcp.RawValue) (mcp.RawValue, error) {
	switch {
	case a.Arguments != nil:
		return a.Arguments, nil
	case len(a.Pairs) == 0 && a.Fill != nil:
		return a.Fill(ctx, schema)
	}
	members := make(map[string]mcp.RawValue, len(a.Pairs))
	for _, p := range a.Pairs {
		members[p.Name] = coerced(valueOf(p.Value), typeOf(schema, p.Name))
	}
	raw, err := strictjson.Marshal(members)
	if err != nil {
		return nil, usage("the arguments must be JSON: " + err.Error())
	}
	return raw, nil
}

// typeOf is the type that a schema says of an argument, or "".
func typeOf(schema mcp.RawValue, name string) string {
	var s struct {
		Properties map[string]mcp.RawValue `json:"properties"`
	}
	var t struct {
		Type string `json:"type"`
	}
	if strictjson.Unmarshal(schema, &s) != nil || strictjson.Unmarshal(s.Properties[name], &t) != nil {
		return ""
	}
	return t.Type
}

// coerced is a value that is text as another type wants it, if it can be read as that.
func coerced(value mcp.RawValue, typ string) mcp.RawValue {
	var text string
	if len(value) == 0 || value[0] != '"' || strictjson.Unmarshal(value, &text) != nil {
		return value
	}
	switch typ {
	case "number", "integer":
		if n, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
			if raw, err := strictjson.Marshal(n); err == nil { // not what is infinite
				return raw
			}
		}
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "false":
			return mcp.RawValue(strings.ToLower(text))
		}
	}
	return value
}

// texts are arguments of a prompt, whose values are texts: JSON strings are what they say,
// all else is taken as it is written.
func texts(pairs []Pair) map[string]string {
	m := make(map[string]string, len(pairs))
	for _, p := range pairs {
		var text string
		if strings.HasPrefix(p.Value, `"`) && strictjson.Unmarshal([]byte(p.Value), &text) == nil {
			m[p.Name] = text
			continue
		}
		m[p.Name] = p.Value
	}
	return m
}
