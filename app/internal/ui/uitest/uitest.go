// Package uitest has what tests of faces share: texts as strangers write them, and what
// puts them in every place of a value.
package uitest

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// Texts are what strangers put where a text is expected, by what is bad about them. forged is
// what looks like a line of the program; the long text has so many words.
func Texts(forged string, words int) map[string]string {
	return map[string]string{
		"escapes":   "\x1b[2J\x1b]0;title\x07 \x9b31m \u009b31m \x1b[31m \x00\x7f\b\r\n" + forged + "\t|",
		"bidi":      "a\u202eb\u2066c\u200e\u061c\u2028\u2029",
		"invisible": "a\u3164b\u115f\uffa0\u2800\u034f\u00ad\u200b\ufeff\ufe01\U000e0041\U000e0100\ue000",
		"invalid":   "\xff\xfe\xc3(\xed\xa0\x80",
		"wide":      strings.Repeat("漢字かな한국어👩‍👩‍👧🇩🇪é̂", 6) + forged,
		"long":      strings.Repeat("name ", words) + "\x1b",
		"token":     strings.Repeat("x", 700) + forged,
		"forged":    strings.Repeat(".", 60) + forged + strings.Repeat(" 文字", 40),
		"markdown":  "[a](javascript:x) \n\n" + forged + "\n```\n\x1b\n&#27;[2J <b>",
		"empty":     "",
	}
}

// Limits are the budget of a session of a test: of a run that has used a little of each thing.
type Limits struct {
	mu    sync.Mutex
	limit host.Amount
}

// Budget is what is used, and the limits.
func (b *Limits) Budget() host.Budget {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit == (host.Amount{}) {
		b.limit = host.Amount{Steps: 16, Calls: 256, Tokens: 100_000, Time: 10 * time.Minute}
	}
	return host.Budget{Used: host.Amount{Steps: 2, Calls: 3, Tokens: 1712, Time: 65 * time.Second, Cost: 0.0123}, Limit: b.limit}
}

// SetLimit changes the limits, as a session does.
func (b *Limits) SetLimit(limit host.Amount) error {
	if limit.Steps < 1 {
		return errors.New("a run needs at least one step and one call")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
	return nil
}

// maxDepth is how deep Fill goes.
const maxDepth = 8

// Fill sets every field of what v points to that can be set from outside: texts to text,
// lists to two elements, contents to one of each kind.
func Fill(t testing.TB, v any, text string) {
	t.Helper()
	fill(t, reflect.ValueOf(v).Elem(), text, 0)
}

func fill(t testing.TB, v reflect.Value, text string, deep int) {
	t.Helper()
	if !v.CanSet() || deep > maxDepth {
		return
	}
	switch v.Type() {
	case reflect.TypeFor[mcp.RawValue]():
		valid := strings.ToValidUTF8(text, "?")
		raw, err := strictjson.Marshal(map[string]any{valid: valid, valid + "/": []any{valid, map[string]any{valid: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		v.SetBytes(raw)
		return
	case reflect.TypeFor[mcp.Contents]():
		var list mcp.Contents
		for _, c := range []mcp.Content{
			new(mcp.TextContent), new(mcp.ImageContent), new(mcp.AudioContent), new(mcp.ResourceLink), new(mcp.EmbeddedResource),
			new(mcp.ToolUseContent), new(mcp.ToolResultContent),
		} {
			fill(t, reflect.ValueOf(c).Elem(), text, deep+2)
			list = append(list, c)
		}
		v.Set(reflect.ValueOf(list))
		return
	}
	fillKind(t, v, text, deep+1)
}

// fillKind fills a value by its kind; deep is the depth of what is in it.
func fillKind(t testing.TB, v reflect.Value, text string, deep int) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), text, deep)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), text, deep)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), text, deep)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, text, deep)
		fill(t, value, text, deep)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default: // functions and interfaces are left
	}
}
