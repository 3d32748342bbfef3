package cassette

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/strictjson"
)

// A Change is a difference at one place.
type Change struct {
	// Path is the JSON pointer of the place.
	Path string `json:"path"`
	// Was and Is are the values; absent ones are nil.
	Was json.RawMessage `json:"was,omitzero"`
	Is  json.RawMessage `json:"is,omitzero"`
}

// opaque are members whose values mean nothing but to their maker: that they are there is compared,
// and nothing else.
var opaque = map[string]bool{
	"nextCursor": true, "requestState": true, "taskId": true, "sessionId": true, "createdAt": true, "lastUpdatedAt": true, "lastModified": true,
	"timestamp": true,
}

// Ignored says what a comparison leaves out, for people.
const Ignored = "the order of items that have a name or URI, ids of messages, _meta, the values of nextCursor, requestState, taskId, sessionId, createdAt, lastUpdatedAt, " +
	"lastModified and timestamp, texts that are a time on both sides, and what is masked"

// maxChanges is how many differences of one message are told.
const maxChanges = 100

// A comparer finds the differences of two JSON values.
type comparer struct {
	ignore  []string // patterns of paths
	changes []Change
}

// compare compares two values, which have to be valid JSON, or nil.
func compare(was, is json.RawMessage, root string, ignore []string) []Change {
	c := &comparer{ignore: ignore}
	c.value(root, "", decode(was), decode(is))
	return c.changes
}

// decode keeps numbers as they are written.
func decode(raw json.RawMessage) any {
	if len(raw) == 0 {
		return absent{}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return string(raw)
	}
	return v
}

// absent is the value of a member that is not there.
type absent struct{}

func (c *comparer) value(path, name string, was, is any) {
	if len(c.changes) >= maxChanges || name == "_meta" || c.ignored(path) {
		return
	}
	_, wasAbsent := was.(absent)
	_, isAbsent := is.(absent)
	if opaque[name] && !wasAbsent && !isAbsent {
		return
	}
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			c.object(path, was, is)
			return
		}
	case []any:
		if is, ok := is.([]any); ok {
			c.array(path, was, is)
			return
		}
	case string:
		if is, ok := is.(string); ok && sameText(was, is) {
			return
		}
		if mask.Marked(was) && !isAbsent && wholeMark(was) { // it was a number, or something within
			return
		}
	case json.Number:
		if is, ok := is.(json.Number); ok && strictjson.Equal(strictjson.RawValue(was), strictjson.RawValue(is)) {
			return
		}
	default: // nil, a bool, or nothing
		if was == is {
			return
		}
	}
	c.changes = append(c.changes, Change{path, encode(was), encode(is)})
}

func (c *comparer) object(path string, was, is map[string]any) {
	names := make([]string, 0, len(was)+len(is))
	for name := range was {
		names = append(names, name)
	}
	for name := range is {
		if _, both := was[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		c.value(path+"/"+pointer.Replace(name), name, member(was, name), member(is, name))
	}
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func member(o map[string]any, name string) any {
	if v, ok := o[name]; ok {
		return v
	}
	return absent{}
}

// listed are the members that items of lists are told apart by.
var listed = []string{"name", "uri", "uriTemplate"}

// keysOf are the places of items by a member that each has, and no two the same; nil if there is
// no such member.
func keysOf(list []any, member string) map[string]int {
	keys := make(map[string]int, len(list))
	for i, item := range list {
		o, _ := item.(map[string]any)
		key, ok := o[member].(string)
		if _, twice := keys[key]; !ok || twice {
			return nil
		}
		keys[key] = i
	}
	return keys
}

// array compares items with one another by what names them, else by their places.
func (c *comparer) array(path string, was, is []any) {
	for _, member := range listed {
		before, now := keysOf(was, member), keysOf(is, member)
		if before == nil || now == nil || len(before)+len(now) == 0 {
			continue
		}
		for i, item := range was {
			o, _ := item.(map[string]any)
			key, _ := o[member].(string)
			var other any = absent{}
			if j, ok := now[key]; ok {
				other = is[j]
			}
			c.value(path+"/"+strconv.Itoa(i), "", item, other)
		}
		for j, item := range is {
			o, _ := item.(map[string]any)
			key, _ := o[member].(string)
			if _, ok := before[key]; !ok {
				c.value(path+"/"+strconv.Itoa(j), "", absent{}, item)
			}
		}
		return
	}
	for i := range max(len(was), len(is)) {
		var a, b any = absent{}, absent{}
		if i < len(was) {
			a = was[i]
		}
		if i < len(is) {
			b = is[i]
		}
		c.value(path+"/"+strconv.Itoa(i), "", a, b)
	}
}

// ignored reports whether a pattern matches a path or what it is in: its parts are names, or * for
// any.
func (c *comparer) ignored(path string) bool {
	parts := strings.Split(path, "/")
	return slices.ContainsFunc(c.ignore, func(pattern string) bool {
		want := strings.Split(pattern, "/")
		if len(want) > len(parts) {
			return false
		}
		for i, w := range want {
			if w != "*" && w != parts[i] {
				return false
			}
		}
		return true
	})
}

// wholeMark reports whether a text is one mark and nothing else.
func wholeMark(text string) bool {
	return strings.Join(mask.Cut(text), "") == "" && len(mask.Cut(text)) == 2
}

// sameText compares texts. Marks on either side stand for any text, and a time for any time.
func sameText(was, is string) bool {
	switch {
	case was == is:
		return true
	case mask.Marked(was):
		return fits(mask.Cut(was), is)
	case mask.Marked(is):
		return fits(mask.Cut(is), was)
	}
	return isTime(was) && isTime(is)
}

// fits reports whether a text has the parts in their order, with anything between them.
func fits(parts []string, text string) bool {
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for i, part := range parts[1:] {
		if i == len(parts)-2 {
			return strings.HasSuffix(rest, part)
		}
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return rest == ""
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

func encode(v any) json.RawMessage {
	if _, nothing := v.(absent); nothing {
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // it was decoded
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}
