package inspect

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// An Issue is a rule of skills that an entry does not keep (SEP-2640).
type Issue struct {
	Code        string `json:"code"`
	Severity    string `json:"severity"`
	Message     string `json:"message"`
	ResourceURI string `json:"resourceUri,omitzero"`
}

// The bounds that hosts support at least (SEP-2640), and those of names and descriptions.
const (
	maxSkillFiles       = skills.MaxFiles
	maxSkillBytes       = 16 << 20
	maxSkillName        = 64
	maxSkillDescription = 1024
	skillFile           = "/SKILL.md"
)

var (
	digestForm    = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	skillNameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

// A skillEntry is an entry of a list of skills.
type skillEntry struct {
	uri         string
	frontmatter mcp.RawValue
	name        *string // in the frontmatter, if it is text
	description *string
	dynamic     bool // its files are generated
	files       []skillResource
	broken      string // why it cannot be read, or ""
}

// A skillResource is a file of an entry.
type skillResource struct {
	URI    string       `json:"uri"`
	Digest *string      `json:"digest"`
	Size   mcp.RawValue `json:"size"`
}

// size is the size that is declared, and whether it is one.
func (r *skillResource) size() (int64, bool) {
	var n int64
	if len(r.Size) == 0 || strictjson.Unmarshal(r.Size, &n) != nil || n < 0 || n > 1<<53-1 {
		return 0, false
	}
	return n, true
}

// readEntry reads an entry as far as it can be read.
func readEntry(raw mcp.RawValue) *skillEntry {
	var e struct {
		Frontmatter mcp.RawValue `json:"frontmatter"`
		Resources   mcp.RawValue `json:"resources"`
	}
	var known struct {
		Name        mcp.RawValue `json:"name"`
		Description mcp.RawValue `json:"description"`
	}
	entry := &skillEntry{uri: member(raw, "uri")}
	err := strictjson.Unmarshal(raw, &e)
	if err == nil && len(e.Frontmatter) > 0 {
		err = strictjson.Unmarshal(e.Frontmatter, &known)
	}
	entry.frontmatter = e.Frontmatter
	entry.name, entry.description = textIn(known.Name), textIn(known.Description)
	if entry.dynamic = string(e.Resources) == `"dynamic"`; err == nil && !entry.dynamic {
		err = strictjson.Unmarshal(e.Resources, &entry.files)
	}
	if err != nil {
		entry.broken = err.Error()
	}
	return entry
}

// textIn is a value that is text, or nil.
func textIn(raw mcp.RawValue) *string {
	var text string
	if len(raw) == 0 || strictjson.Unmarshal(raw, &text) != nil {
		return nil
	}
	return &text
}

// shownName is what the skill is called for people.
func (e *skillEntry) shownName() string {
	if e.name != nil && strings.TrimSpace(*e.name) != "" {
		return strings.TrimSpace(*e.name)
	}
	if name := nameInURI(e.uri); name != "" {
		return name
	}
	return e.uri
}

// sameURI is the form of a URI by which URIs are compared: without dot segments, and with
// percent encoding where it is needed alone. What is no hierarchical URI is itself.
func sameURI(uri string) string {
	u, err := url.Parse(percent.ReplaceAllStringFunc(uri, plainPercent))
	if err != nil || u.Scheme == "" || u.Opaque != "" || u.Path != "" && !strings.HasPrefix(u.Path, "/") {
		return uri
	}
	var kept []string
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		switch segment {
		case ".":
		case "..":
			if len(kept) > 1 {
				kept = kept[:len(kept)-1]
			}
		default:
			kept = append(kept, segment)
		}
	}
	same := u.Scheme + "://" + u.Host + strings.Join(kept, "/")
	if u.RawQuery != "" {
		same += "?" + u.RawQuery
	}
	return same
}

// percent is an encoded byte.
var percent = regexp.MustCompile("%[0-9A-Fa-f]{2}")

// plainPercent is an encoded byte as it is, where it needs no encoding (RFC 3986, 6.2.2).
func plainPercent(encoded string) string {
	n, err := strconv.ParseUint(encoded[1:], 16, 8)
	if c := byte(n); err == nil && c < utf8.RuneSelf && (c == '-' || c == '.' || c == '_' || c == '~' ||
		'0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
		return string(rune(c))
	}
	return strings.ToUpper(encoded)
}

// nameInURI is the name of a skill in the URI of its SKILL.md, or "".
func nameInURI(uri string) string {
	folder, ok := strings.CutSuffix(sameURI(uri), skillFile)
	if !ok {
		return ""
	}
	return folder[strings.LastIndex(folder, "/")+1:]
}

// check looks at an entry alone.
func (e *skillEntry) check() []Issue {
	issues := []Issue{}
	add := func(code, severity, message, uri string) {
		issues = append(issues, Issue{code, severity, message, uri})
	}
	if e.broken != "" {
		add("malformed-entry", severityError, "cannot read the entry: "+e.broken, "")
		return issues
	}
	inURI := nameInURI(e.uri)
	named := e.name != nil && strings.TrimSpace(*e.name) != ""
	switch {
	case !named:
		add("missing-name", severityError, "the frontmatter has no name", "")
	case utf8.RuneCountInString(*e.name) > maxSkillName || !skillNameForm.MatchString(*e.name):
		add("malformed-name", severityError, fmt.Sprintf("the name %q is not up to %d small letters, digits and single hyphens between them", *e.name, maxSkillName), "")
	}
	switch {
	case e.description == nil || strings.TrimSpace(*e.description) == "":
		add("missing-description", severityError, "the frontmatter has no description", "")
	case utf8.RuneCountInString(*e.description) > maxSkillDescription:
		add("malformed-description", severityError, fmt.Sprintf("the description has more than %d characters", maxSkillDescription), "")
	}
	switch {
	case inURI == "":
		add("malformed-uri", severityError, "the URI does not end with NAME"+skillFile, "")
	case named && inURI != *e.name:
		add("name-path-mismatch", severityError, fmt.Sprintf("the URI says %q, the frontmatter %q", inURI, *e.name), "")
	}
	if e.dynamic {
		add("dynamic-resources", severityWarning, "its files are generated and have no digests to check", "")
		return issues
	}
	return append(issues, e.checkFiles()...)
}

// checkFiles looks at the list of files.
func (e *skillEntry) checkFiles() []Issue {
	var issues []Issue
	add := func(code, severity, message, uri string) {
		issues = append(issues, Issue{code, severity, message, uri})
	}
	if len(e.files) > maxSkillFiles {
		add("resource-limit-exceeded", severityWarning, fmt.Sprintf("it has %d files; hosts support %d", len(e.files), maxSkillFiles), "")
	}
	var total int64
	for i := range e.files {
		n, _ := e.files[i].size()
		total = min(total+n, 1<<53)
	}
	if total > maxSkillBytes {
		add("size-limit-exceeded", severityWarning, fmt.Sprintf("its files have %d bytes; hosts support %d", total, int64(maxSkillBytes)), "")
	}
	own := sameURI(e.uri)
	if !slices.ContainsFunc(e.files, func(r skillResource) bool { return sameURI(r.URI) == own }) {
		add("manifest-missing-self", severityError, "its own SKILL.md is not among its files", "")
	}
	root, rooted := strings.CutSuffix(own, skillFile)
	seen := make(map[string]bool)
	for i := range e.files {
		r := &e.files[i]
		id := sameURI(r.URI)
		if seen[id] {
			add("duplicate-resource", severityError, "the file is listed more than once", r.URI)
		}
		seen[id] = true
		if rooted && !strings.HasPrefix(id, root+"/") {
			add("resource-outside-skill-root", severityError, "the file is not in the skill's folder", r.URI)
		}
		switch {
		case r.Digest == nil:
			add("missing-digest", severityError, "the file has no digest", r.URI)
		case !digestForm.MatchString(*r.Digest):
			add("malformed-digest", severityError, `the digest is not "sha256:" and 64 hexadecimal digits`, r.URI)
		}
		switch _, ok := r.size(); {
		case len(r.Size) == 0:
			add("missing-size", severityError, "the file has no size", r.URI)
		case !ok:
			add("malformed-size", severityError, "the size is not a number of bytes", r.URI)
		}
	}
	return issues
}

// sameNames finds skills whose names others have too; issues are by the URIs of skills.
func sameNames(entries []*skillEntry) map[string]Issue {
	byName := make(map[string][]string)
	for _, e := range entries {
		if e.name == nil || strings.TrimSpace(*e.name) == "" {
			continue
		}
		if id := sameURI(e.uri); !slices.Contains(byName[*e.name], id) {
			byName[*e.name] = append(byName[*e.name], id)
		}
	}
	found := make(map[string]Issue)
	for name, ids := range byName {
		if len(ids) < 2 {
			continue
		}
		for _, id := range ids {
			found[id] = Issue{"duplicate-name", severityWarning, fmt.Sprintf("%d skills have the name %q; distinguish them by their URIs", len(ids), name), ""}
		}
	}
	return found
}

// matches compares the frontmatter of the list with that of the file.
func (e *skillEntry) matches(file []byte) []Issue {
	issues := []Issue{}
	add := func(code, message string) { issues = append(issues, Issue{code, severityError, message, e.uri}) }
	served, _, err := skills.Frontmatter(file)
	if err != nil {
		code := "frontmatter-unparsable"
		if !strings.HasPrefix(string(file), "---") {
			code = "frontmatter-absent"
		}
		add(code, "the frontmatter of the served SKILL.md cannot be read: "+err.Error())
		return issues
	}
	in, err := strictjson.ParseObject(served)
	if err != nil {
		add("frontmatter-unparsable", "the frontmatter of the served SKILL.md cannot be read: "+err.Error())
		return issues
	}
	listed, err := strictjson.ParseObject(e.frontmatter)
	if err != nil {
		add("frontmatter-unparsable", "the frontmatter of the list cannot be read: "+err.Error())
		return issues
	}
	var names []string
	for _, o := range []strictjson.Object{listed, in} {
		for name := range o.All() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a, inList := listed.Member(name)
		b, inFile := in.Member(name)
		switch {
		case !inList:
			add("frontmatter-mismatch", fmt.Sprintf("the served SKILL.md has %q, the list does not", name))
		case !inFile:
			add("frontmatter-mismatch", fmt.Sprintf("the list has %q, the served SKILL.md does not", name))
		case !strictjson.Equal(a, b):
			add("frontmatter-mismatch", fmt.Sprintf("%q is different in the list and in the served SKILL.md", name))
		}
	}
	return issues
}
