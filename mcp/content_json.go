package mcp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// The types of content, as the member "type" says them.
const (
	nameText         = "text"
	nameImage        = "image"
	nameAudio        = "audio"
	nameResourceLink = "resource_link"
	nameResource     = "resource"
	nameToolUse      = "tool_use"
	nameToolResult   = "tool_result"
	nameObject       = "object"
)

// The types of the member "type" of things that have only one: they take no
// room, write their name without allocating, and accept no other.
type (
	typeText         struct{}
	typeImage        struct{}
	typeAudio        struct{}
	typeResourceLink struct{}
	typeResource     struct{}
	typeToolUse      struct{}
	typeToolResult   struct{}
	typeObject       struct{}
)

// AppendText appends the name.
func (typeText) AppendText(b []byte) ([]byte, error) { return append(b, nameText...), nil }

// AppendText appends the name.
func (typeImage) AppendText(b []byte) ([]byte, error) { return append(b, nameImage...), nil }

// AppendText appends the name.
func (typeAudio) AppendText(b []byte) ([]byte, error) { return append(b, nameAudio...), nil }

// AppendText appends the name.
func (typeResourceLink) AppendText(b []byte) ([]byte, error) {
	return append(b, nameResourceLink...), nil
}

// AppendText appends the name.
func (typeResource) AppendText(b []byte) ([]byte, error) { return append(b, nameResource...), nil }

// AppendText appends the name.
func (typeToolUse) AppendText(b []byte) ([]byte, error) { return append(b, nameToolUse...), nil }

// AppendText appends the name.
func (typeToolResult) AppendText(b []byte) ([]byte, error) {
	return append(b, nameToolResult...), nil
}

// AppendText appends the name.
func (typeObject) AppendText(b []byte) ([]byte, error) { return append(b, nameObject...), nil }

// MarshalText returns the name, for encoding/json.
func (typeText) MarshalText() ([]byte, error) { return []byte(nameText), nil }

// MarshalText returns the name, for encoding/json.
func (typeImage) MarshalText() ([]byte, error) { return []byte(nameImage), nil }

// MarshalText returns the name, for encoding/json.
func (typeAudio) MarshalText() ([]byte, error) { return []byte(nameAudio), nil }

// MarshalText returns the name, for encoding/json.
func (typeResourceLink) MarshalText() ([]byte, error) { return []byte(nameResourceLink), nil }

// MarshalText returns the name, for encoding/json.
func (typeResource) MarshalText() ([]byte, error) { return []byte(nameResource), nil }

// MarshalText returns the name, for encoding/json.
func (typeToolUse) MarshalText() ([]byte, error) { return []byte(nameToolUse), nil }

// MarshalText returns the name, for encoding/json.
func (typeToolResult) MarshalText() ([]byte, error) { return []byte(nameToolResult), nil }

// MarshalText returns the name, for encoding/json.
func (typeObject) MarshalText() ([]byte, error) { return []byte(nameObject), nil }

// UnmarshalText checks the name.
func (typeText) UnmarshalText(b []byte) error { return checkType(b, nameText) }

// UnmarshalText checks the name.
func (typeImage) UnmarshalText(b []byte) error { return checkType(b, nameImage) }

// UnmarshalText checks the name.
func (typeAudio) UnmarshalText(b []byte) error { return checkType(b, nameAudio) }

// UnmarshalText checks the name.
func (typeResourceLink) UnmarshalText(b []byte) error { return checkType(b, nameResourceLink) }

// UnmarshalText checks the name.
func (typeResource) UnmarshalText(b []byte) error { return checkType(b, nameResource) }

// UnmarshalText checks the name.
func (typeToolUse) UnmarshalText(b []byte) error { return checkType(b, nameToolUse) }

// UnmarshalText checks the name.
func (typeToolResult) UnmarshalText(b []byte) error { return checkType(b, nameToolResult) }

// UnmarshalText checks the name.
func (typeObject) UnmarshalText(b []byte) error { return checkType(b, nameObject) }

func checkType(got []byte, want string) error {
	if string(got) != want {
		return fmt.Errorf("type must be %q", want)
	}
	return nil
}

// UnmarshalJSON decodes a list of content as tools and prompts have it. Content
// of an unknown type, and of those that only sampling knows, is an error that
// names the type.
func (c *Contents) UnmarshalJSON(data []byte) error {
	list, err := decodeContents(data, false)
	if err != nil {
		return err
	}
	*c = list
	return nil
}

// accepted are the limits for a part of a message that was accepted already,
// whose depth its transport has bounded.
var accepted = wire.Limits{Depth: 10_000}

func decodeContents(data []byte, sampling bool) (Contents, error) {
	parts, err := wire.ParseArray(data, accepted, 0)
	if err != nil {
		return nil, err
	}
	list := make(Contents, 0, len(parts))
	for i, part := range parts {
		c, err := decodeContent(part, sampling)
		if err != nil {
			return nil, at(strconv.Itoa(i), err)
		}
		list = append(list, c)
	}
	return list, nil
}

// decodeContent decodes one block of content; tool use and tool results only in
// sampling.
func decodeContent(data []byte, sampling bool) (Content, error) {
	head, err := wire.ParseObject(data, accepted)
	if err != nil {
		return nil, err
	}
	kind, ok := head.Member("type")
	if !ok || kind[0] != '"' {
		return nil, errors.New("content has no type")
	}
	c := newContent(wire.Text(kind), sampling)
	if c == nil {
		return nil, fmt.Errorf("unknown type of content %.40q", wire.Text(kind))
	}
	if err := wire.DecodeParams(data, c); err != nil {
		return nil, err
	}
	return c, nil
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// at adds to an error of decoding that it is in the member or element called
// name, so that it says the whole way from the root of the message.
func at(name string, err error) error {
	e := wire.Error{Offset: -1, Reason: err.Error(), Err: err}
	if inner, ok := errors.AsType[*wire.Error](err); ok {
		e = *inner
	}
	e.Pointer = "/" + pointerEscapes.Replace(name) + e.Pointer
	return &e
}

func newContent(name string, sampling bool) Content {
	switch name {
	case nameText:
		return new(TextContent)
	case nameImage:
		return new(ImageContent)
	case nameAudio:
		return new(AudioContent)
	}
	if sampling {
		switch name {
		case nameToolUse:
			return new(ToolUseContent)
		case nameToolResult:
			return new(ToolResultContent)
		}
		return nil
	}
	switch name {
	case nameResourceLink:
		return new(ResourceLink)
	case nameResource:
		return new(EmbeddedResource)
	}
	return nil
}
