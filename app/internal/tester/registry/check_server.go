package registry

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
)

// lazy compiles an expression when it is first used: most runs of the program check no server.
//
//go:noinline // it would be three functions for each expression
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

var (
	serverShape = shape{
		"$schema": isString, "_meta": isObject, "description": isString, "icons": isArray, "name": isString, "packages": isArray,
		"remotes": isArray, "repository": isObject, "title": isString, "version": isString, "websiteUrl": isString,
	}
	repositoryShape = shape{"id": isString, "source": isString, "subfolder": isString, "url": isString}
	iconShape       = shape{"mimeType": isString, "sizes": isArray, "src": isString, "theme": isString}
)

var (
	label      = `[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?`
	namespace  = lazy(`^` + label + `(?:\.` + label + `)+$`)
	namePart   = lazy(`^[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]$`)
	schemaURL  = lazy(`^https://static\.modelcontextprotocol\.io/schemas/([^/]+)/server\.schema\.json$`)
	semver     = lazy(`^v?\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$`)
	iconSize   = lazy(`^(?:\d+x\d+|any)$`)
	subfolders = lazy(`^[a-zA-Z0-9._/-]+$`)
)

// Places where sources are, by what repository.source calls them.
var repositories = map[string]func() *regexp.Regexp{
	"github": lazy(`^https?://(?:www\.)?github\.com/[\w.-]+/[\w.-]+/?$`),
	"gitlab": lazy(`^https?://(?:www\.)?gitlab\.com/[\w.-]+(?:/[\w.-]+)+/?$`),
}

// server checks the whole file.
func (c *checker) server(s location) {
	if !s.object(serverShape, "$schema", "name", "description", "version") {
		return
	}
	s.schema()
	if name, ok := s.get("name", isString); ok {
		name.serverName()
	}
	if d, ok := s.get("description", isString); ok {
		d.length(1, 100)
	}
	if t, ok := s.get("title", isString); ok && t.length(1, 100) && strings.TrimSpace(t.n.text) == "" {
		t.fail("empty", "write a title, or remove the field", "the title is white space")
	}
	if v, ok := s.get("version", isString); ok {
		if v.length(1, 255) && v.version() && !semver().MatchString(v.n.text) {
			v.warn("version-not-semantic", "write it like 1.0.2", "the version %s is not semantic and might be sorted incorrectly", quoted(v.n.text))
		}
	}
	if u, ok := s.get("websiteUrl", isString); ok {
		u.https("the website")
	}
	if r, ok := s.get("repository", isObject); ok {
		r.repository()
	}
	for _, icon := range s.list("icons") {
		icon.icon()
	}
	packages, remotes := s.list("packages"), s.list("remotes")
	for _, p := range packages {
		p.packaged()
	}
	for _, r := range remotes {
		r.remote()
	}
	same(packages, "duplicate-package", "duplicate package", func(p location) string {
		return p.text("registryType") + " " + p.text("identifier") + " " + p.text("version")
	})
	same(remotes, "duplicate-remote", "duplicate URL", func(r location) string { return r.text("type") + " " + r.text("url") })
	if len(packages)+len(remotes) == 0 {
		s.warn("nothing-to-use", "add packages or remotes", "the file has no package and no URL, so users cannot reach the server")
	}
	if meta, ok := s.get("_meta", isObject); ok {
		meta.meta()
	}
}

// same reports items that have the same key as one before.
func same(items []location, code, reason string, key func(location) string) {
	seen := map[string]bool{}
	for _, item := range items {
		if item.n.kind != isObject {
			continue
		}
		k := key(item)
		if seen[k] {
			item.fail(code, "remove one of them", "%s", reason)
		}
		seen[k] = true
	}
}

func (s location) schema() {
	u, ok := s.get("$schema", isString)
	if !ok || u.n.text == Schema {
		return
	}
	fix := "write " + Schema + ", and check again"
	if m := schemaURL().FindStringSubmatch(u.n.text); m != nil {
		u.fail("schema-version", fix, "the file uses the schema %s, but is checked against another one", quoted(m[1]))
		return
	}
	u.fail("schema-version", fix, "%s is not a server.json schema", quoted(u.n.text))
}

// serverName checks a name: a domain, reversed, and a name below it.
func (s location) serverName() {
	const fix = "write it like io.github.ada/words or com.example/words"
	if !s.length(3, 200) {
		return
	}
	before, after, found := strings.Cut(s.n.text, "/")
	switch {
	case !found:
		s.fail("name", fix, "the name %s has no slash between namespace and name", quoted(s.n.text))
	case strings.Contains(after, "/"):
		s.fail("name", fix, "the name %s has more than one slash", quoted(s.n.text))
	case !namespace().MatchString(before):
		s.fail("name-namespace", fix, "the namespace %s is not a reversed domain name", quoted(before))
	case !namePart().MatchString(after):
		s.fail("name", fix, "the part %s must have two or more letters, digits, dots, - or _, and begin and end with a letter or digit", quoted(after))
	}
}

// version checks that a version is one, and not a range of them.
func (s location) version() bool {
	v := strings.TrimSpace(s.n.text)
	switch {
	case v == "latest":
		s.fail("version-latest", "write the version itself", "latest is not a version")
	case isRange(v):
		s.fail("version-range", "write one version, such as 1.0.2", "%s is a version range", quoted(v))
	case v == "" || v != s.n.text:
		s.fail("version-space", "remove the white space", "the version begins or ends with white space")
	default:
		return true
	}
	return false
}

// isRange reports whether a version stands for several: ^1.2, ~1, >=1 <2, 1.x, 1.*, 1 - 2, 1 || 2, [1,2).
func isRange(v string) bool {
	if v == "" {
		return false
	}
	if strings.ContainsAny(v[:1], "^~<>=[(") || strings.Contains(v, "||") || strings.Contains(v, " - ") || strings.ContainsAny(v, ",*<>") {
		return true
	}
	number, _, _ := strings.Cut(v, "-")
	for part := range strings.SplitSeq(number, ".") {
		if part == "x" || part == "X" {
			return true
		}
	}
	return false
}

// https checks an absolute URL with https.
func (s location) https(what string) bool {
	u, err := url.Parse(s.n.text)
	switch {
	case err != nil || u.Host == "" && u.Opaque == "":
		s.fail("url", "write it like https://example.com/words", "%s is not an absolute URL: %s", what, quoted(s.n.text))
	case u.Scheme != "https" || u.Host == "":
		s.fail("url-scheme", "write it with https", "%s must begin with https://: %s", what, quoted(s.n.text))
	case u.User != nil:
		s.fail("url-user", "remove user and password", "%s contains a user or a password, but the file is public", what)
	default:
		return true
	}
	return false
}

func (s location) repository() {
	s.object(repositoryShape, "url", "source")
	source := s.text("source")
	if at, ok := s.get("source", isString); ok {
		pattern := repositories[source]
		address, given := s.get("url", isString)
		switch {
		case pattern == nil:
			at.fail("repository-source", "write github or gitlab, or remove the repository", "registries do not support repositories at %s", quoted(source))
		case given && !pattern().MatchString(address.n.text):
			address.fail("repository-url", "write it like https://"+source+".com/ada/words", "%s is not a repository URL at %s", quoted(address.n.text), source)
		}
	}
	if sub, ok := s.get("subfolder", isString); ok {
		folder := sub.n.text
		if !subfolders().MatchString(folder) || path.IsAbs(folder) || path.Clean(folder) != folder || folder == "." || folder == ".." || strings.HasPrefix(folder, "../") {
			sub.fail("repository-subfolder", "write it like src/words", "%s is not a folder path in the repository", quoted(folder))
		}
	}
}

func (s location) icon() {
	if !s.object(iconShape, "src") {
		return
	}
	if src, ok := s.get("src", isString); ok && src.length(1, 255) {
		src.https("the icon")
	}
	if m, ok := s.get("mimeType", isString); ok {
		m.oneOf("image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp")
	}
	if t, ok := s.get("theme", isString); ok {
		t.oneOf("light", "dark")
	}
	for _, size := range s.list("sizes") {
		if size.n.kind != isString || !iconSize().MatchString(size.n.text) {
			size.fail("icon-size", "write it like 48x48, or any", "%s is not an icon size", quoted(size.n.text))
		}
	}
}

// publisherMeta is the only member of _meta that the official registry keeps, and maxMeta how many
// bytes it may have there.
const (
	publisherMeta = "io.modelcontextprotocol.registry/publisher-provided"
	maxMeta       = 4096
)

func (s location) meta() {
	s.twice()
	for _, m := range s.n.members {
		at := s.of(m.name, m.value)
		switch {
		case m.name != publisherMeta:
			at.warn("meta-dropped", "put it under "+publisherMeta, "the official registry drops the field %s of _meta", quoted(m.name))
		case m.value.kind != isObject:
			at.fail("type", "write an object", "expected an object, got %s", m.value.kind)
		case at.size() > maxMeta:
			at.fail("too-long", "shorten it", "the field has %d bytes; the official registry accepts at most %d", at.size(), maxMeta)
		}
	}
}

// size is how many bytes a value has without white space.
func (s location) size() int {
	var compact bytes.Buffer
	if err := json.Compact(&compact, s.c.text[s.n.at:s.n.end]); err != nil {
		return s.n.end - s.n.at
	}
	return compact.Len()
}
