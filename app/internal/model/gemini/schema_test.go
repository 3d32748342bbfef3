package gemini_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A message is one of testdata/messages.json.
type message struct {
	Enum   []string   `json:"enum"`
	OneOf  [][]string `json:"oneof"`
	Fields map[string]field
}

type field struct {
	Type     string `json:"type"`
	Repeated bool   `json:"repeated"`
	Map      bool   `json:"map"`
	Required bool   `json:"required"`
}

// published are the messages of the provider, with what the published version does not have
// yet.
var published = sync.OnceValues(func() (map[string]message, error) {
	data, err := os.ReadFile("testdata/messages.json")
	if err != nil {
		return nil, err
	}
	var list map[string]message
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	list["ThinkingConfig"].Fields["thinkingLevel"] = field{Type: "string"}
	list["GenerateContentRequest"].Fields["continuationToken"] = field{Type: "bytes"}
	return list, nil
})

// checkRequest fails the test if a request is none as the provider publishes it.
func checkRequest(t *testing.T, text string) {
	t.Helper()
	list, err := published()
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	if err := check(list, "GenerateContentRequest", value, ""); err != nil {
		t.Errorf("%v in %s", err, text)
	}
	if err := checkTurns(value.(map[string]any)); err != nil {
		t.Errorf("%v in %s", err, text)
	}
}

// check checks a value against a message, an enumeration or a plain type.
func check(list map[string]message, kind string, value any, at string) error {
	m, known := list[kind]
	if !known {
		return checkPlain(kind, value, at)
	}
	if m.Enum != nil {
		s, _ := value.(string)
		if kind == "Type" {
			s = strings.ToUpper(s) // the pages of the provider write types in either way
		}
		if !slices.Contains(m.Enum, s) {
			return fmt.Errorf("%s: %v is no %s", at, value, kind)
		}
		return nil
	}
	members, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: %v is no %s", at, value, kind)
	}
	for _, group := range m.OneOf {
		if n := len(slices.DeleteFunc(slices.Clone(group), func(f string) bool { return members[f] == nil })); n != 1 {
			return fmt.Errorf("%s: %d of %v are set", at, n, group)
		}
	}
	for name, f := range m.Fields {
		if kind == "Schema" && members["anyOf"] != nil {
			break // its type is that of its alternatives
		}
		if f.Required && (members[name] == nil || members[name] == "") {
			return fmt.Errorf("%s: %s misses %s", at, kind, name)
		}
	}
	for name, v := range members {
		f, ok := m.Fields[name]
		if !ok {
			return fmt.Errorf("%s: %s has no %s", at, kind, name)
		}
		if err := checkField(list, &f, v, at+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

func checkField(list map[string]message, f *field, v any, at string) error {
	switch {
	case f.Repeated:
		items, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s: %v is no list", at, v)
		}
		for i, item := range items {
			if err := check(list, f.Type, item, fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
	case f.Map:
		members, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: %v is no map", at, v)
		}
		for name, member := range members {
			if err := check(list, f.Type, member, at+"/"+name); err != nil {
				return err
			}
		}
	default:
		return check(list, f.Type, v, at)
	}
	return nil
}

// checkPlain checks a value of a type that is no message.
func checkPlain(kind string, value any, at string) error {
	ok := false
	switch kind {
	case "google.protobuf.Value":
		ok = true
	case "google.protobuf.Struct":
		_, ok = value.(map[string]any)
	case "string":
		_, ok = value.(string)
	case "bytes":
		s, _ := value.(string)
		_, err := base64.StdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(s))
		ok = s != "" && err == nil
	case "bool":
		_, ok = value.(bool)
	default:
		_, ok = value.(float64)
	}
	if !ok {
		return fmt.Errorf("%s: %v is no %s", at, value, kind)
	}
	return nil
}

// checkTurns checks what no message says: turns alternate, the user's are the first and the
// last, and each call has its result in the next turn, in order.
func checkTurns(req map[string]any) error {
	var calls []string
	turns, _ := req["contents"].([]any)
	if len(turns)%2 == 0 {
		return fmt.Errorf("%d turns", len(turns))
	}
	for i, turn := range turns {
		members := turn.(map[string]any)
		if want := []string{"user", "model"}[i%2]; members["role"] != want {
			return fmt.Errorf("turn %d is of %v", i, members["role"])
		}
		list, _ := members["parts"].([]any)
		if len(list) == 0 {
			return fmt.Errorf("turn %d has no parts", i)
		}
		var made, answered []string
		for _, p := range list {
			of := p.(map[string]any)
			if c, ok := of["functionCall"].(map[string]any); ok {
				made = append(made, fmt.Sprint(c["id"], c["name"]))
			}
			if c, ok := of["functionResponse"].(map[string]any); ok {
				answered = append(answered, fmt.Sprint(c["id"], c["name"]))
			}
		}
		if !slices.Equal(answered, calls) {
			return fmt.Errorf("turn %d answers %v of %v", i, answered, calls)
		}
		calls = made
	}
	return nil
}
