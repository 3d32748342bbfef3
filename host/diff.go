package host

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/internal/schematext"
	"github.com/parley-mcp/parley/mcp"
)

// Bounds of what Diff tells.
const (
	maxChanges    = 50
	maxChangeText = 400
)

// A ChangeKind says what happened to a part of a definition.
type ChangeKind string

// What can happen to a part of a definition.
const (
	ChangeAdded   ChangeKind = "added"
	ChangeRemoved ChangeKind = "removed"
	ChangeEdited  ChangeKind = "changed"
)

// A Change is one difference between two definitions, for a person to read. Its
// texts are those of a stranger: show them through [Escape].
type Change struct {
	// Path names the part in words: description, input field "to".
	Path string
	// Kind is what happened to it.
	Kind ChangeKind
	// Before and After are the part as it was and as it is, at most 400 bytes
	// each. Of long texts they hold the words that differ and a few around them.
	Before, After string
}

// Diff returns how two definitions differ, what a model reads first. Nil is a
// definition that says nothing. There are at most 50 changes; the last one then
// says how many more there are. Definitions with the same digest have none.
func Diff(old, new *Definition) []Change {
	var d differ
	if old == nil {
		old = &Definition{}
	}
	if new == nil {
		new = &Definition{}
	}
	d.words("instructions", old.Instructions, new.Instructions)
	before, after := setOf(old.Tools), setOf(new.Tools)
	d.names(before, after, func(name string) {
		d.value("tool "+schematext.Quote(name), present(before[name], name), present(after[name], name))
	})
	d.tool(old.Tool, new.Tool)
	d.value("execution", schematext.Canonical(old.Execution), schematext.Canonical(new.Execution))
	return d.told()
}

// told are the changes to tell; the last one says how many more there are.
func (d *differ) told() []Change {
	if more := d.total - len(d.list); more > 0 {
		d.list = append(d.list[:maxChanges-1], Change{
			Path: "further parts", Kind: ChangeEdited, After: fmt.Sprintf("%d more changes are not listed", more+1),
		})
	}
	return d.list
}

// setOf returns the set of names.
func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// present returns name, or nothing if it is not there.
func present(there bool, name string) string {
	if there {
		return name
	}
	return ""
}

// A differ collects changes.
type differ struct {
	list  []Change
	total int
}

func (d *differ) add(c Change) {
	d.total++
	if len(d.list) < maxChanges {
		d.list = append(d.list, c)
	}
}

// value compares two short values; an empty one is absent.
func (d *differ) value(path, before, after string) {
	if before == after {
		return
	}
	kind := changeKind(before, after)
	before, after = clipPair(before, after, maxChangeText)
	d.add(Change{path, kind, before, after})
}

func changeKind(before, after string) ChangeKind {
	switch {
	case before == "":
		return ChangeAdded
	case after == "":
		return ChangeRemoved
	}
	return ChangeEdited
}

// names calls f for every name in either map, in order.
func (d *differ) names(a, b map[string]bool, f func(name string)) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f(name)
	}
}

func (d *differ) tool(old, new *mcp.Tool) {
	if old == nil {
		old = &mcp.Tool{}
	}
	if new == nil {
		new = &mcp.Tool{}
	}
	d.value("name", old.Name, new.Name)
	d.words("title", old.Title, new.Title)
	d.words("description", old.Description, new.Description)
	d.annotations(old, new)
	d.schema(schematext.Path{Kind: "input"}, old.InputSchema, new.InputSchema)
	d.schema(schematext.Path{Kind: "output"}, old.OutputSchema, new.OutputSchema)
	for i := range max(len(old.Icons), len(new.Icons)) {
		d.value("icon "+strconv.Itoa(i+1), iconText(old.Icons, i), iconText(new.Icons, i))
	}
	before, after := make(map[string]bool), make(map[string]bool)
	for name := range old.Meta {
		before[name] = true
	}
	for name := range new.Meta {
		after[name] = true
	}
	d.names(before, after, func(name string) {
		d.value("_meta "+schematext.Quote(name), schematext.Canonical(old.Meta[name]), schematext.Canonical(new.Meta[name]))
	})
}

// annotations compares what two definitions say of the tool's behaviour.
func (d *differ) annotations(old, new *mcp.Tool) {
	before, after := hints(old), hints(new)
	for _, name := range []string{"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		d.value("annotation "+name, before[name], after[name])
	}
	if len(before) == 0 && len(after) == 0 && (old.Annotations == nil) != (new.Annotations == nil) {
		d.value("annotations", present(old.Annotations != nil, "{}"), present(new.Annotations != nil, "{}"))
	}
}

func iconText(icons []mcp.Icon, i int) string {
	if i >= len(icons) {
		return ""
	}
	icon := icons[i]
	parts := []string{strconv.Quote(icon.Src)}
	if icon.MIMEType != "" {
		parts = append(parts, "type "+strconv.Quote(icon.MIMEType))
	}
	if icon.Sizes != nil {
		parts = append(parts, fmt.Sprintf("sizes %q", icon.Sizes))
	}
	if icon.Theme != "" {
		parts = append(parts, "theme "+strconv.Quote(icon.Theme))
	}
	return strings.Join(parts, ", ")
}

// Bounds of the comparison of texts by words.
const (
	maxDiffWords = 600 // of the part that differs, before and after
	contextWords = 3   // shown around a difference
	maxContext   = 60  // bytes of them on each side
)

// words compares two texts word by word: each run of words that differ is one
// change.
func (d *differ) words(path, before, after string) {
	if before == after || before == "" || after == "" {
		d.value(path, before, after)
		return
	}
	a, b := splitWords(before), splitWords(after)
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	hunks := []hunk{{start, len(a) - end, start, len(b) - end}}
	if h := hunks[0]; h.a1-h.a0 <= maxDiffWords && h.b1-h.b0 <= maxDiffWords {
		hunks = splitHunk(a, b, h)
	}
	const room = maxChangeText - 2*(maxContext+len("…"))
	for _, h := range hunks {
		left, right := around(a, h.a0, h.a1)
		old, new := clipPair(strings.Join(a[h.a0:h.a1], ""), strings.Join(b[h.b0:h.b1], ""), room)
		d.add(Change{path, ChangeEdited, left + old + right, left + new + right})
	}
}

// A hunk is a run of words a[a0:a1] that became b[b0:b1].
type hunk struct{ a0, a1, b0, b1 int }

// splitWords splits a text into words and the spaces between them.
func splitWords(s string) []string {
	var list []string
	start, space := 0, false
	for i, r := range s {
		if is := unicode.IsSpace(r); i == 0 {
			space = is
		} else if is != space {
			list = append(list, s[start:i])
			start, space = i, is
		}
	}
	return append(list, s[start:])
}

// splitHunk finds the longest common subsequence in a hunk. Runs that fewer
// than twice the words of context lie between stay together. A table of all
// pairs is enough for maxDiffWords; the program's servers have a diff of lines
// that grows with the number of changes instead.
func splitHunk(a, b []string, h hunk) []hunk {
	n, m := h.a1-h.a0, h.b1-h.b0
	length := make([][]int16, n+1)
	for i := range length {
		length[i] = make([]int16, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if a[h.a0+i] == b[h.b0+j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var hunks []hunk
	i, j, common := 0, 0, 0
	differ := func() {
		if last := len(hunks) - 1; last < 0 || common > 4*contextWords {
			hunks = append(hunks, hunk{h.a0 + i, 0, h.b0 + j, 0})
		}
		common = 0
	}
	for i < n || j < m {
		if i < n && j < m && a[h.a0+i] == b[h.b0+j] {
			i, j, common = i+1, j+1, common+1
			continue
		}
		differ()
		if j == m || i < n && length[i+1][j] >= length[i][j+1] {
			i++
		} else {
			j++
		}
		last := &hunks[len(hunks)-1]
		last.a1, last.b1 = h.a0+i, h.b0+j
	}
	return hunks
}

// around returns the words before and after words[from:to].
func around(words []string, from, to int) (left, right string) {
	const tokens = 2 * contextWords // words and the spaces between them
	left = strings.Join(words[max(0, from-tokens):from], "")
	right = strings.Join(words[to:min(len(words), to+tokens)], "")
	if len(left) > maxContext {
		left = left[len(left)-maxContext:]
		for len(left) > 0 && !utf8.RuneStart(left[0]) {
			left = left[1:]
		}
	}
	if from > tokens || len(left) == maxContext {
		left = "…" + strings.TrimLeft(left, " \n\t")
	}
	if len(right) > maxContext {
		right = schematext.Cut(right, maxContext) + "…"
	} else if to+tokens < len(words) {
		right = strings.TrimRight(right, " \n\t") + "…"
	}
	return left, right
}

// clipPair cuts two texts that differ to limit bytes, so that the difference
// shows.
func clipPair(before, after string, limit int) (string, string) {
	if len(before) <= limit && len(after) <= limit {
		return before, after
	}
	same := 0
	for same < len(before) && same < len(after) && before[same] == after[same] {
		same++
	}
	if same > maxContext {
		same -= maxContext / 2
		for same > 0 && !utf8.RuneStart(before[same]) {
			same--
		}
		before, after = "…"+before[same:], "…"+after[same:]
	}
	return schematext.Clip(before, limit), schematext.Clip(after, limit)
}
