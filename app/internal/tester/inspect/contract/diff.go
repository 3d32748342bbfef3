package contract

import (
	"maps"
	"slices"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/contract/schemadiff"
)

// Compare tells what has changed from one contract to another, the worst first.
func Compare(before, after *Contract) []Change {
	var d differ
	if before.Revision != after.Revision {
		d.add([]string{"revision"}, before.Revision, after.Revision, verdict{Breaking, "the revision of the protocol that was locked is not spoken"})
	}
	d.fields([]string{"server"}, before.Server, after.Server, serverFields)
	d.value([]string{"instructions"}, textOf(before.Instructions), textOf(after.Instructions), verdict{Risky, "hosts may show this text to the model"})
	d.capabilities(before.Capabilities, after.Capabilities)
	d.list("tools", before.Tools, after.Tools, d.tool, verdict{Breaking, "a call of it fails now"})
	d.list("prompts", before.Prompts, after.Prompts, d.prompt, verdict{Breaking, "a client that gets it fails now"})
	gone := verdict{Breaking, "reading it fails now"}
	if lists, ok := after.Capabilities["resources"].(map[string]any); ok && lists["listChanged"] == true {
		gone = verdict{Risky, "reading it fails now, but the server says that this list changes (resources.listChanged)"}
	}
	d.list("resources", before.Resources, after.Resources, d.resource, gone)
	d.list("resourceTemplates", before.Templates, after.Templates, d.resource, verdict{Breaking, "reading what it stands for may fail now"})
	order(d.changes)
	return d.changes
}

// A differ collects changes.
type differ struct{ changes []Change }

func (d *differ) add(path []string, before, after string, v verdict) {
	d.changes = append(d.changes, Change{Path(path...), v.class, shown(before), shown(after), v.why})
}

// value compares two texts; an empty one is none.
func (d *differ) value(path []string, before, after string, v verdict) {
	if before != after {
		d.add(path, before, after, v)
	}
}

func textOf(s string) string {
	if s == "" {
		return ""
	}
	return plain(s)
}

// at is a path within a path.
func at(path []string, more ...string) []string { return slices.Concat(path, more) }

// jsonOf is the text of a member, in a form that is the same for equal values; empty if there
// is none.
func jsonOf(m map[string]any, name string) string {
	value, ok := m[name]
	if !ok {
		return ""
	}
	text, err := schemadiff.Canonical([]byte(plain(value)))
	if err != nil {
		return plain(value)
	}
	return text
}

// names are the names that either map has, in order.
func names[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = make(map[string]V)
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// fields are the verdicts on changes of members; "" is for all others.
type fields map[string]verdict

var (
	forPeople = verdict{Safe, "a text or picture for people"}
	acted     = verdict{Risky, "the model acts on this text"}
	hinted    = verdict{Risky, "hosts may ask for consent, or not, by this hint"}
	metadata  = verdict{Risky, "what programs make of this is not known here"}

	serverFields = fields{
		"name": {Risky, "programs may know the server by this name"}, "": {Safe, "what the server says about itself; nothing is decided by it"},
	}
	toolFields = fields{
		"title": forPeople, "icons": forPeople, "description": acted, "": metadata,
	}
	annotationFields = fields{"title": forPeople, "": hinted}
	promptFields     = fields{"title": forPeople, "icons": forPeople, "description": acted, "": metadata}
	argumentFields   = fields{"title": forPeople, "description": acted, "": metadata}
	resourceFields   = fields{
		"title": forPeople, "icons": forPeople, "description": acted, "annotations": {Risky, "clients choose resources for the model by this"},
		"name": {Risky, "programs may know it by this name"}, "": metadata,
	}
)

// fields compares the members of two objects, but for those in leave.
func (d *differ) fields(path []string, before, after map[string]any, f fields, leave ...string) {
	for _, name := range names(before, after) {
		if slices.Contains(leave, name) {
			continue
		}
		v, ok := f[name]
		if !ok {
			v = f[""]
		}
		d.value(at(path, name), jsonOf(before, name), jsonOf(after, name), v)
	}
}

func object(m map[string]any, name string) map[string]any {
	o, _ := m[name].(map[string]any)
	return o
}

// capabilities compares what a server declares.
func (d *differ) capabilities(before, after map[string]any) {
	for _, name := range names(before, after) {
		path := []string{"capabilities", name}
		was, is := before[name], after[name]
		switch {
		case was == nil:
			d.add(path, "", jsonOf(after, name), verdict{Safe, "the server offers more"})
		case is == nil:
			d.add(path, jsonOf(before, name), "", verdict{Breaking, "requests for it are refused now"})
		case name == "extensions":
			d.extensions(path, object(before, name), object(after, name))
		case name == "experimental":
			d.value(path, jsonOf(before, name), jsonOf(after, name), metadata)
		default:
			d.settings(path, object(before, name), object(after, name))
		}
	}
}

// settings compares the settings of a capability.
func (d *differ) settings(path []string, before, after map[string]any) {
	for _, name := range names(before, after) {
		was, is := before[name] == true, after[name] == true
		v := metadata
		switch {
		case is && !was:
			v = verdict{Safe, "the server offers more"}
		case was && !is && name == "subscribe":
			v = verdict{Breaking, "subscriptions are refused now"}
		case was && !is && name == "listChanged":
			v = verdict{Risky, "clients are not told of changes any more, and may keep an old list"}
		case !was && !is && (before[name] == nil || after[name] == nil) && (before[name] == false || after[name] == false):
			continue // false is what is left out
		}
		d.value(at(path, name), jsonOf(before, name), jsonOf(after, name), v)
	}
}

func (d *differ) extensions(path []string, before, after map[string]any) {
	for _, id := range names(before, after) {
		was, is := jsonOf(before, id), jsonOf(after, id)
		v := metadata
		switch {
		case was == "":
			v = verdict{Safe, "the server offers more"}
		case is == "":
			v = verdict{Breaking, "clients that use the extension fail now"}
		}
		d.value(at(path, id), was, is, v)
	}
}

// list compares the items of a list.
func (d *differ) list(name string, before, after Items, compare func(path []string, before, after map[string]any), gone verdict) {
	var lost, came []string
	for _, key := range names(before, after) {
		was, is := before[key], after[key]
		switch {
		case is == nil:
			lost = append(lost, key)
		case was == nil:
			came = append(came, key)
		default:
			compare([]string{name, key}, was, is)
		}
	}
	for _, key := range lost {
		path := []string{name, key}
		i := slices.IndexFunc(came, func(other string) bool { return nameless(before[key]) == nameless(after[other]) })
		if i >= 0 && gone.class == Breaking {
			d.add(path, plain(key), plain(came[i]), verdict{gone.class, "it seems to have got another name: " + gone.why})
			came = slices.Delete(came, i, i+1)
			continue
		}
		d.add(path, plain(before[key]), "", gone)
	}
	for _, key := range came {
		d.add([]string{name, key}, "", plain(after[key]), verdict{Safe, "it is new, and nobody uses it yet"})
	}
}

// nameless is an item without what identifies it.
func nameless(item map[string]any) string {
	rest := maps.Clone(item)
	for _, name := range []string{"name", "title", "uri", "uriTemplate"} {
		delete(rest, name)
	}
	return plain(rest)
}

func (d *differ) tool(path []string, before, after map[string]any) {
	d.fields(path, before, after, toolFields, "name", "inputSchema", "outputSchema", "annotations", "execution")
	d.fields(at(path, "annotations"), object(before, "annotations"), object(after, "annotations"), annotationFields)
	d.execution(at(path, "execution"), object(before, "execution"), object(after, "execution"))
	d.schema(at(path, "inputSchema"), before, after, "inputSchema")
	d.schema(at(path, "outputSchema"), before, after, "outputSchema")
}

// execution compares how a tool may be called.
func (d *differ) execution(path []string, before, after map[string]any) {
	const support = "taskSupport"
	was, is := jsonOf(before, support), jsonOf(after, support)
	v := verdict{Breaking, "a call in the way of before is refused now"}
	if is == `"optional"` {
		v = verdict{Safe, "the tool can be called in one way more"}
	} else if none := was == "" || was == `"forbidden"`; none && (is == "" || is == `"forbidden"`) {
		v = verdict{Safe, "it means the same"}
	}
	d.value(at(path, support), was, is, v)
	d.fields(path, before, after, fields{"": metadata}, support)
}

// schema compares a schema of a tool by what it means.
func (d *differ) schema(path []string, before, after map[string]any, name string) {
	was, is := jsonOf(before, name), jsonOf(after, name)
	output := name == "outputSchema"
	if was == is {
		return
	}
	if output && was == "" {
		d.add(path, "", is, verdict{Safe, "more is promised than before"})
		return
	}
	if output && is == "" {
		d.add(path, was, "", verdict{Breaking, "nothing is promised any more about what is returned"})
		return
	}
	changes, err := schemadiff.Compare([]byte(was), []byte(is))
	if err != nil {
		d.add(path, was, is, verdict{Breaking, err.Error() + ", and differ"})
		return
	}
	for _, c := range changes {
		v := rules[c.Effect].input
		if output {
			v = rules[c.Effect].output
		}
		d.add(at(path, c.Path...), c.Before, c.After, v)
	}
}

func (d *differ) prompt(path []string, before, after map[string]any) {
	d.fields(path, before, after, promptFields, "name", "arguments")
	was, is := arguments(before), arguments(after)
	for _, name := range names(was, is) {
		place := at(path, "arguments", name)
		a, had := was[name]
		b, has := is[name]
		switch {
		case !has:
			d.add(place, plain(a), "", verdict{Breaking, "an argument that callers give is not there any more"})
		case !had && b["required"] == true:
			d.add(place, "", plain(b), verdict{Breaking, "the new argument must be given: clients of before have none"})
		case !had:
			d.add(place, "", plain(b), verdict{Safe, "the new argument may be left out"})
		default:
			d.required(at(place, "required"), a["required"] == true, b["required"] == true)
			d.fields(place, a, b, argumentFields, "name", "required")
		}
	}
}

// required compares whether an argument must be given.
func (d *differ) required(path []string, before, after bool) {
	v := verdict{Safe, "the argument may be left out now"}
	if after {
		v = verdict{Breaking, "the argument must be given now"}
	}
	d.value(path, plain(before), plain(after), v)
}

// arguments are those of a prompt by their names.
func arguments(prompt map[string]any) map[string]map[string]any {
	byName := make(map[string]map[string]any)
	list, _ := prompt["arguments"].([]any)
	for _, item := range list {
		a, _ := item.(map[string]any)
		if name, ok := a["name"].(string); ok {
			byName[name] = a
		}
	}
	return byName
}

func (d *differ) resource(path []string, before, after map[string]any) {
	d.fields(path, before, after, resourceFields, "uri", "uriTemplate", "mimeType")
	was, is := jsonOf(before, "mimeType"), jsonOf(after, "mimeType")
	v := verdict{Breaking, "clients that read it by its type take it for something else"}
	switch "" {
	case was:
		v = verdict{Safe, "its type is told now"}
	case is:
		v = verdict{Risky, "its type is not told any more"}
	}
	d.value(at(path, "mimeType"), was, is, v)
}
