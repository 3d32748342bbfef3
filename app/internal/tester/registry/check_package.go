package registry

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

var (
	packageShape = shape{
		"environmentVariables": isArray, "fileSha256": isString, "identifier": isString, "packageArguments": isArray, "registryBaseUrl": isString,
		"registryType": isString, "runtimeArguments": isArray, "runtimeHint": isString, "transport": isObject, "version": isString,
	}
	stdioShape  = shape{"type": isString}
	urlShape    = shape{"headers": isArray, "type": isString, "url": isString}
	remoteShape = shape{"headers": isArray, "type": isString, "url": isString, "variables": isObject}
)

var (
	sha256Text   = lazy(`^[a-f0-9]{64}$`)
	ociReference = lazy(`^[a-zA-Z0-9][a-zA-Z0-9._/:-]*?(:[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127})?(@sha256:[a-f0-9]{64})?$`)
	httpURL      = lazy(`^https?://\S+$`)
	headerName   = lazy("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// A registryType is what packages of a type must have and must not.
type registryType struct {
	bases     []string // registries that the official one takes; none: the identifier says it
	versioned bool     // the version is a member, else it is part of the identifier
}

var registryTypes = map[string]registryType{
	"npm":   {[]string{"https://registry.npmjs.org"}, true},
	"pypi":  {[]string{"https://pypi.org"}, true},
	"nuget": {[]string{"https://api.nuget.org/v3/index.json", "https://api.nuget.org"}, true},
	"oci":   {},
	"mcpb":  {},
}

// packaged checks one package.
func (s location) packaged() {
	if !s.object(packageShape, "registryType", "identifier", "transport") {
		return
	}
	name := s.text("registryType")
	if at, ok := s.get("registryType", isString); ok {
		if kind, known := registryTypes[name]; known {
			s.ofType(name, kind)
		} else {
			at.warn("registry-type", "write npm, pypi, oci, nuget or mcpb", "many clients cannot install packages of the type %s", quoted(name))
		}
	}
	if id, ok := s.get("identifier", isString); ok && id.length(1, maxURL) {
		id.identifier(name)
	}
	if v, ok := s.get("version", isString); ok && v.length(1, 255) {
		v.version()
	}
	if h, ok := s.get("fileSha256", isString); ok && !sha256Text().MatchString(h.n.text) {
		h.fail("hash", "write the SHA-256 of the file: 64 hexadecimal digits in lower case", "invalid SHA-256 hash")
	}
	if b, ok := s.get("registryBaseUrl", isString); ok {
		b.https("the registry")
	}
	if args, ok := s.get("runtimeArguments", isArray); ok && len(args.n.items) > 0 && s.text("runtimeHint") == "" {
		args.warn("runtime-hint", "add runtimeHint, such as npx, uvx or docker", "runtime arguments require a runtime")
	}
	for _, list := range []string{"runtimeArguments", "packageArguments"} {
		arguments(s.list(list))
	}
	keyed(s.list("environmentVariables"), "duplicate-variable", func(name string) string { return name }, location.environmentName)
	if t, ok := s.get("transport", isObject); ok {
		t.transport(s.templateNames())
	}
}

// ofType checks what only some types of packages have.
func (s location) ofType(name string, kind registryType) {
	if kind.versioned {
		if s.n.member("version") == nil {
			s.fail("version-missing", "add version", "%s packages require a version", name)
		}
		if h, ok := s.get("fileSha256", isString); ok {
			h.warn("hash-unused", "remove it", "the official registry accepts no hash for %s packages", name)
		}
	}
	base, given := s.get("registryBaseUrl", isString)
	if given && kind.versioned && !slices.Contains(kind.bases, base.n.text) {
		base.warn("registry-base", "write "+kind.bases[0]+", or remove it", "the official registry accepts no %s packages from %s", name, quoted(base.n.text))
	}
	switch {
	case name == "mcpb" && s.n.member("fileSha256") == nil:
		s.fail("hash-missing", "add fileSha256; run 'sha256sum FILE' to compute it", "mcpb packages require the hash of their file")
	case name == "oci":
		for _, member := range []string{"registryBaseUrl", "version", "fileSha256"} {
			if at, ok := s.get(member, isString); ok {
				at.fail("oci-member", "remove it, and write the identifier like ghcr.io/ada/words:1.0.2", "oci packages must not have %s", member)
			}
		}
	case name == "mcpb" && given:
		base.warn("registry-base", "remove it", "the identifier of an mcpb package is the complete URL")
	}
}

// identifier checks what a package is called.
func (s location) identifier(registry string) {
	id := s.n.text
	if strings.ContainsAny(id, " \t\r\n") {
		s.fail("identifier", "remove the white space", "the identifier %s contains white space", quoted(id))
		return
	}
	switch registry {
	case "npm", "pypi", "nuget":
		if strings.Contains(id, "://") || strings.LastIndexByte(id, '@') > 0 || strings.Contains(id, "==") {
			s.fail("identifier", "write only the package name; put its version in the field version", "the identifier %s is not a package name", quoted(id))
		}
	case "oci":
		s.image()
	case "mcpb":
		if s.https("the bundle") && !strings.Contains(strings.ToLower(id), "mcp") {
			s.warn("bundle-name", "name the file like words.mcpb", "the official registry accepts only bundles whose URL contains mcp")
		}
		s.bundleHost()
	}
}

// image checks a reference of an image, which must say which one.
func (s location) image() {
	const fix = "write it like ghcr.io/ada/words:1.0.2"
	m := ociReference().FindStringSubmatch(s.n.text)
	switch {
	case m == nil || strings.Contains(s.n.text, "://"):
		s.fail("identifier", fix, "%s is not an image reference", quoted(s.n.text))
	case m[1] == ":latest" && m[2] == "":
		s.fail("version-latest", fix, "latest is not an image version")
	case m[1] == "" && m[2] == "":
		s.fail("version-missing", fix, "the image %s has neither tag nor digest", quoted(s.n.text))
	}
}

func (s location) bundleHost() {
	u, err := url.Parse(s.n.text)
	if err != nil || u.Host == "" {
		return // it has been said
	}
	switch strings.TrimPrefix(strings.ToLower(u.Host), "www.") {
	case "github.com", "gitlab.com":
	default:
		s.warn("bundle-host", "put the bundle in a GitHub or GitLab release", "the official registry accepts no bundles from %s", quoted(u.Host))
	}
}

// maxURL is how many characters of a URL are read; the schema has no limit.
const maxURL = 2048

// transport checks how a package serves. The names are those that its URL may have in braces.
func (s location) transport(names map[string]bool) {
	kind := s.text("type")
	members := urlShape
	if kind == TransportStdio {
		members = stdioShape
	}
	if u, ok := s.get("url", isString); ok && kind == TransportStdio {
		u.fail("stdio-url", "remove it", "a stdio server must not have a URL")
	}
	if !s.object(members, "type") {
		return
	}
	if at, ok := s.get("type", isString); !ok || !at.oneOf(TransportStdio, TransportStreamable, TransportSSE) || kind == TransportStdio {
		return
	}
	s.address(names, "the arguments and environment variables of the package")
	s.headers()
}

// remote checks a server at a URL.
func (s location) remote() {
	if !s.object(remoteShape, "type", "url") {
		return
	}
	if at, ok := s.get("type", isString); ok {
		at.oneOf(TransportStreamable, TransportSSE)
	}
	names := map[string]bool{}
	for _, v := range s.entries("variables") {
		names[v.name] = true
		v.input(nil)
	}
	s.address(names, "the variables")
	s.headers()
	at, ok := s.get("url", isString)
	if !ok {
		return
	}
	used := map[string]bool{}
	for _, name := range braces(at.n.text) {
		used[name] = true
	}
	for _, v := range s.entries("variables") {
		if !used[v.name] {
			v.warn("variable-unused", "remove it, or write it in braces in the URL", "the URL does not use the variable %s", quoted(v.name))
		}
	}
	at.public()
}

// address checks the URL of a transport, in which names stand in braces.
func (s location) address(names map[string]bool, where string) {
	at, ok := s.get("url", isString)
	if !ok {
		if s.n.member("url") == nil {
			s.fail("required", "add url", "the field url is missing")
		}
		return
	}
	if !at.length(1, maxURL) {
		return
	}
	u, err := url.Parse(brace().ReplaceAllString(at.n.text, "1"))
	switch {
	case !httpURL().MatchString(at.n.text) || err != nil || u.Host == "":
		at.fail("url", "write it like https://example.com/mcp", "%s is not an http or https URL", quoted(at.n.text))
	case u.User != nil:
		at.fail("url-user", "remove user and password; authenticate with headers", "the URL contains a user or a password, but the file is public")
	}
	for _, name := range braces(at.n.text) {
		if !names[name] {
			at.fail("variable-unknown", "name one of "+where, "%s in the URL is not a variable", quoted("{"+name+"}"))
		}
	}
}

// public checks that others can reach a URL.
func (s location) public() {
	u, err := url.Parse(brace().ReplaceAllString(s.n.text, "1"))
	if err != nil || u.Host == "" {
		return // it has been said
	}
	host := strings.ToLower(u.Hostname())
	ip := net.ParseIP(host)
	switch {
	case host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsUnspecified() || ip.IsLinkLocalUnicast()):
		s.fail("url-local", "write the public URL", "others cannot reach %s", quoted(host))
	case u.Scheme == "http":
		s.fail("url-scheme", "write it with https", "the URL must begin with https://")
	}
}

// headers checks those that a client sends.
func (s location) headers() {
	keyed(s.list("headers"), "duplicate-header", strings.ToLower, func(name location) {
		if !headerName().MatchString(name.n.text) {
			name.fail("header-name", "write it like X-API-Key", "%s is not a valid header name", quoted(name.n.text))
		}
	})
}
