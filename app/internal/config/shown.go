package config

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/parley-mcp/parley/strictjson"
)

// Shown is the text of After with "***" in the place of what may be secret: values of
// environments and headers that are no variables, secrets of clients, and what looks like a
// secret in arguments and URLs. Comments are as they are.
func (d *Draft) Shown() string {
	root, err := parseHuJSON(d.After)
	if err != nil {
		return redacted
	}
	if o, ok := root.Value.(*hujson.Object); ok {
		redactMember(o, "baseUrl", redactURL)
		for _, entry := range objects(object(o, "servers")) {
			redactEntry(entry)
		}
	}
	return string(root.Pack())
}

// MayHoldSecrets reports whether Shown would hide something of an entry.
func (e *Entry) MayHoldSecrets() bool {
	raw, err := strictjson.Marshal(e)
	if err != nil {
		return true
	}
	value, err := hujson.Parse(raw)
	if err != nil {
		return true
	}
	if entry, ok := value.Value.(*hujson.Object); ok {
		redactEntry(entry)
	}
	return !bytes.Equal(value.Pack(), raw)
}

func redactEntry(entry *hujson.Object) {
	redactMember(entry, "url", redactURL)
	for _, name := range []string{"env", "headers"} {
		values := object(entry, name)
		for i := range values.Members {
			redactText(&values.Members[i].Value, hideValue)
		}
	}
	redactMember(object(entry, "oauth"), "clientSecret", hideValue)
	for _, name := range []string{"command", "args"} {
		if i := find(entry, name); i >= 0 {
			if list, ok := entry.Members[i].Value.Value.(*hujson.Array); ok {
				redactList(list)
			}
		}
	}
}

// hideValue hides a text that names no variable.
func hideValue(text string) string {
	if text == "" || strings.Contains(text, "${") {
		return text
	}
	return redacted
}

// redactList hides what redactArgs hides in a list of texts.
func redactList(list *hujson.Array) {
	args := make([]string, len(list.Elements))
	for i := range list.Elements {
		if l, ok := list.Elements[i].Value.(hujson.Literal); ok {
			args[i] = l.String()
		}
	}
	for i, shown := range RedactArgs(args) {
		if shown != args[i] {
			list.Elements[i].Value = hujson.String(shown)
		}
	}
}

// redactMember puts another text into a member, if it is there.
func redactMember(o *hujson.Object, name string, redact func(string) string) {
	if i := find(o, name); i >= 0 {
		redactText(&o.Members[i].Value, redact)
	}
}

func redactText(v *hujson.Value, redact func(string) string) {
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		return
	}
	if text := redact(l.String()); text != l.String() {
		v.Value = hujson.String(text)
	}
}

// object is a member that is an object, or an empty one.
func object(o *hujson.Object, name string) *hujson.Object {
	if i := find(o, name); i >= 0 {
		if child, ok := o.Members[i].Value.Value.(*hujson.Object); ok {
			return child
		}
	}
	return &hujson.Object{}
}

// objects are the members that are objects.
func objects(o *hujson.Object) []*hujson.Object {
	var list []*hujson.Object
	for i := range o.Members {
		if child, ok := o.Members[i].Value.Value.(*hujson.Object); ok {
			list = append(list, child)
		}
	}
	return list
}
