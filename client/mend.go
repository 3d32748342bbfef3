package client

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/internal/revision/shape"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// maxNote bounds how much of a block that cannot be read is given as text.
const maxNote = 16 << 10

// mendable are the limits of an answer that is mended, whose depth its transport has bounded.
var mendable = wire.Limits{Depth: 512}

// needed are the members that a value is of no use without.
var needed = map[reflect.Type][]string{
	reflect.TypeFor[mcp.InitializeResult]():            {"protocolVersion"},
	reflect.TypeFor[mcp.DiscoverResult]():              {"supportedVersions"},
	reflect.TypeFor[mcp.ListToolsResult]():             {"tools"},
	reflect.TypeFor[mcp.ListPromptsResult]():           {"prompts"},
	reflect.TypeFor[mcp.ListResourcesResult]():         {"resources"},
	reflect.TypeFor[mcp.ListResourceTemplatesResult](): {"resourceTemplates"},
	reflect.TypeFor[mcp.ReadResourceResult]():          {"contents"},
	reflect.TypeFor[mcp.GetPromptResult]():             {"messages"},
	reflect.TypeFor[mcp.CompleteResult]():              {"completion"},
	reflect.TypeFor[mcp.Completion]():                  {"values"},
	reflect.TypeFor[mcp.Tool]():                        {"name"},
	reflect.TypeFor[mcp.Prompt]():                      {"name"},
	reflect.TypeFor[mcp.PromptArgument]():              {"name"},
	reflect.TypeFor[mcp.PromptMessage]():               {"content"},
	reflect.TypeFor[mcp.Resource]():                    {"uri"},
	reflect.TypeFor[mcp.ResourceTemplate]():            {"uriTemplate"},
	reflect.TypeFor[mcp.Icon]():                        {"src"},
	reflect.TypeFor[mcp.TextContent]():                 {"text"},
	reflect.TypeFor[mcp.ImageContent]():                {"data"},
	reflect.TypeFor[mcp.AudioContent]():                {"data"},
	reflect.TypeFor[mcp.ResourceLink]():                {"uri"},
	reflect.TypeFor[mcp.EmbeddedResource]():            {"resource"},
	reflect.TypeFor[mcp.ResourceContents]():            {"text", "blob"}, // the one that there is
}

// blocks are the types of content that a result may have, by their name.
var blocks = map[string]reflect.Type{
	"text":          reflect.TypeFor[mcp.TextContent](),
	"image":         reflect.TypeFor[mcp.ImageContent](),
	"audio":         reflect.TypeFor[mcp.AudioContent](),
	"resource_link": reflect.TypeFor[mcp.ResourceLink](),
	"resource":      reflect.TypeFor[mcp.EmbeddedResource](),
}

// readResult decodes a result. If it does not fit, readResult leaves out or replaces the smallest
// wrong parts, reports each as a [Problem], and decodes the rest. Nothing becomes more permissive:
// an unreadable hint counts as absent, and an unreadable isError as true. It mends only into the
// result type of the method: of a caller's type it does not know which values are safe.
func (c *Client) readResult(ctx context.Context, sh *shape.Shape, method, target string, raw wire.RawValue, out any) (mended bool, err error) {
	err = sh.UpResult(method, raw, out)
	switch {
	case err == nil:
		c.tidy(ctx, method, target, raw, out)
		return false, nil
	case !isResultOf(method, out):
		return false, err
	}
	m := &wire.Mender{
		Needs:   func(t reflect.Type, member string) bool { return slices.Contains(needed[t], member) },
		Instead: instead, Surplus: surplus, Concrete: concrete, Note: note,
	}
	text, err := m.Mend(raw, reflect.TypeOf(out).Elem())
	if err != nil {
		return false, err
	}
	reflect.ValueOf(out).Elem().SetZero()
	if err := sh.UpResult(method, text, out); err != nil {
		return false, err
	}
	if err := nothingLeft(out, m.Losses); err != nil {
		return false, err
	}
	c.tidy(ctx, method, target, text, out)
	of := items{result: raw}
	for _, l := range m.Losses {
		subject := target
		if subject == "" {
			subject = of.at(l.Pointer)
		}
		c.Report(ctx, &Problem{Method: method, Subject: subject, Place: l.Pointer, Effect: effect(target, l.Part), Why: l.Why.Error()})
	}
	if m.More > 0 {
		c.Report(ctx, &Problem{Method: method, Subject: target, Effect: Incomplete, Why: fmt.Sprintf("%d more parts of the same answer are wrong", m.More)})
	}
	return true, nil
}

// effect is what the loss of a part means in the answer about a target: a part such as /tools/3 of a
// list, which has no target, is an item.
func effect(target, part string) Effect {
	if names := strings.Split(part, "/"); target == "" && len(names) == 3 {
		if _, err := strconv.Atoi(names[2]); err == nil {
			return Omitted
		}
	}
	return Changed
}

// tidy mends values that decode and are wrong: a tool's result in the form of another protocol, an
// embedded resource without contents, an unknown role.
func (c *Client) tidy(ctx context.Context, method, target string, raw wire.RawValue, out any) {
	report := func(place, why string) {
		c.Report(ctx, &Problem{Method: method, Subject: target, Place: place, Effect: Changed, Why: why})
	}
	of := items{result: raw}
	switch out := out.(type) {
	case *mcp.CallToolResult:
		for i, block := range out.Content {
			if isHollow(block) {
				out.Content[i] = mcp.Text(noteText(of.list("content")[i], errHollow))
				report(fmt.Sprintf("/content/%d", i), errHollow.Error())
			}
		}
		if out.Content == nil && out.StructuredContent == nil && hasOthers(raw) {
			out.Content = mcp.Contents{mcp.Text(noteText(raw, errForeign))}
			report("/content", errForeign.Error())
		}
	case *mcp.GetPromptResult:
		for i := range out.Messages {
			m := &out.Messages[i]
			if m.Role == "" {
				m.Role = mcp.RoleUser
			} else if m.Role != mcp.RoleUser && m.Role != mcp.RoleAssistant {
				report(fmt.Sprintf("/messages/%d/role", i), fmt.Sprintf("the role is %q; it was read as %q", m.Role, mcp.RoleUser))
				m.Role = mcp.RoleUser
			}
		}
	}
}

var (
	errHollow  = errors.New("the resource is missing")
	errForeign = errors.New("the result has neither content nor structured content")
)

// isHollow reports whether a block is an embedded resource without contents.
func isHollow(block mcp.Content) bool {
	r, ok := block.(*mcp.EmbeddedResource)
	return ok && r.Resource.URI == "" && r.Resource.Text == "" && r.Resource.Blob == nil
}

// hasOthers reports whether a result of a tool has members that are not of the protocol.
func hasOthers(raw wire.RawValue) bool {
	o, err := wire.ParseObject(raw, mendable)
	if err != nil {
		return false
	}
	for name := range o.All() {
		switch name {
		case "content", "structuredContent", "isError", "_meta", "resultType":
		default:
			return true
		}
	}
	return false
}

// nothingLeft returns an error if mending left out all of a resource or prompt, which would then look empty.
func nothingLeft(out any, losses []wire.Loss) error {
	left, list := 1, ""
	switch r := out.(type) {
	case *mcp.ReadResourceResult:
		left, list = len(r.Contents), "/contents/"
	case *mcp.GetPromptResult:
		left, list = len(r.Messages), "/messages/"
	}
	i := slices.IndexFunc(losses, func(l wire.Loss) bool { return strings.HasPrefix(l.Pointer, list) })
	if left > 0 || i < 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", losses[i].Pointer, losses[i].Why)
}

// isResultOf reports whether out points to the result type of a method of the core.
func isResultOf(method string, out any) bool {
	row, ok := mcp.Lookup(method)
	v := reflect.ValueOf(out)
	return ok && v.Kind() == reflect.Pointer && v.Type().Elem() == row.Result && !v.IsNil()
}

var errNoBlocks = errors.New("expected a list of blocks")

// instead replaces a member that cannot be read.
func instead(t reflect.Type, member string, value wire.RawValue) wire.RawValue {
	switch {
	case t == reflect.TypeFor[mcp.CallToolResult]() && member == "isError":
		return wire.RawValue("true")
	case t == reflect.TypeFor[mcp.CallToolResult]() && member == "content" && string(value) == "null":
		return wire.RawValue("[]") // as Go and Java write an empty list
	case t == reflect.TypeFor[mcp.CallToolResult]() && member == "content":
		if value[0] != '{' { // a single block is mended like those in a list
			value = note(nil, value, errNoBlocks)
		}
		return slices.Concat(wire.RawValue("["), value, wire.RawValue("]"))
	case t == reflect.TypeFor[mcp.PromptMessage]() && member == "role":
		return wire.RawValue(`"user"`)
	case value[0] == '{' && (t == reflect.TypeFor[mcp.ReadResourceResult]() && member == "contents" ||
		t == reflect.TypeFor[mcp.GetPromptResult]() && member == "messages"):
		return slices.Concat(wire.RawValue("["), value, wire.RawValue("]"))
	case t == reflect.TypeFor[mcp.ServerCapabilities]() && value[0] != 'f':
		return wire.RawValue("{}")
	}
	return nil
}

// surplus returns which of two members that exclude each other is left out.
func surplus(t reflect.Type, o wire.Object) string {
	if t != reflect.TypeFor[mcp.ResourceContents]() {
		return ""
	}
	text, hasText := o.Member("text")
	blob, hasBlob := o.Member("blob")
	switch {
	case !hasText || !hasBlob || string(text) == "null" || string(blob) == "null": // as the decoder reads it
		return ""
	case blob[0] == '"' && len(blob) > 2: // it is not empty
		return "text"
	}
	return "blob"
}

// concrete is the type of a block of content.
func concrete(_ reflect.Type, value wire.RawValue) reflect.Type {
	if o, err := wire.ParseObject(value, mendable); err == nil {
		if name, ok := o.Member("type"); ok && name[0] == '"' {
			return blocks[wire.Text(name)]
		}
	}
	return nil
}

// note returns the text block that replaces an unreadable one. It includes the block as received, which a
// model may understand. A bare string becomes the text itself.
func note(_ reflect.Type, value wire.RawValue, why error) wire.RawValue {
	if value[0] == '"' {
		return textBlock(wire.Text(value))
	}
	return textBlock(noteText(value, why))
}

// noteText is a part of an answer that cannot be read, as it came, with the reason.
func noteText(value wire.RawValue, why error) string {
	text := string(value)
	if len(text) > maxNote {
		text = strings.ToValidUTF8(text[:maxNote], "") + fmt.Sprintf("… (%d bytes in all)", len(text))
	}
	return fmt.Sprintf("[A part of this answer cannot be read: %v. As it came:]\n%s", why, text)
}

// textBlock is a block of text.
func textBlock(text string) wire.RawValue {
	return append(wire.AppendString(wire.RawValue(`{"type":"text","text":`), text), '}')
}

// items are the lists of a result, read when they are first asked for.
type items struct {
	result wire.RawValue
	lists  map[string][]wire.RawValue

	item, name string // the item that was asked for last, and its name
}

// at is the name or URI of the item that a pointer such as /tools/3/title leads into, or "".
func (l *items) at(pointer string) string {
	parts := strings.SplitN(pointer, "/", 4)
	if len(parts) < 3 {
		return ""
	}
	if item := parts[1] + "/" + parts[2]; item != l.item { // else one item is read for each wrong part of it
		l.item, l.name = item, l.nameOf(parts[1], parts[2])
	}
	return l.name
}

func (l *items) nameOf(of, at string) string {
	list := l.list(of)
	index, err := strconv.Atoi(at)
	if err != nil || index >= len(list) {
		return ""
	}
	item, err := wire.ParseObject(list[index], mendable)
	if err != nil {
		return ""
	}
	for _, name := range []string{"name", "uri", "uriTemplate"} {
		if value, ok := item.Member(name); ok && value[0] == '"' {
			return wire.Text(value)
		}
	}
	return ""
}

func (l *items) list(name string) []wire.RawValue {
	list, ok := l.lists[name]
	if !ok {
		if o, err := wire.ParseObject(l.result, mendable); err == nil {
			raw, _ := o.Member(name)
			list, _ = wire.ParseArray(raw, mendable, 0) // none if it is no list
		}
		if l.lists == nil {
			l.lists = make(map[string][]wire.RawValue)
		}
		l.lists[name] = list
	}
	return list
}
