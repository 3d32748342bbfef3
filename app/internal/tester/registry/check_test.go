package registry_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/tester/registry"
)

// start is a file without faults, up to its packages and remotes.
const start = `{
  "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  "name": "io.github.ada/words",
  "description": "Counts words.",
  "version": "1.0.2"`

// file is a file with members after start.
func file(members string) string { return start + ",\n  " + members + "\n}" }

// npm is a file with one package of npm, which has these members besides.
func npm(members string) string {
	if members != "" {
		members = ", " + members
	}
	return file(`"packages": [{"registryType": "npm", "identifier": "@ada/words", "version": "1.0.2", "transport": {"type": "stdio"}` + members + `}]`)
}

// env is a file with one environment variable of these members.
func env(members string) string { return npm(`"environmentVariables": [{` + members + `}]`) }

// arg is a file with one argument of these members.
func arg(members string) string { return npm(`"packageArguments": [{` + members + `}]`) }

// remote is a file with one remote server of these members.
func remote(members string) string { return file(`"remotes": [{` + members + `}]`) }

// replace is a file whose start has new in the place of old.
func replace(old, new string) string {
	return strings.Replace(remote(`"type": "sse", "url": "https://example.com/sse"`), old, new, 1)
}

// Each row is a file and the findings of it: severity, code and pointer.
func TestFindings(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"a package", npm(""), nil},
		{"a remote server", remote(`"type": "streamable-http", "url": "https://example.com/mcp"`), nil},

		{"no JSON", start, []string{"error json-syntax "}},
		{"a comment", "{ // x\n}", []string{"error json-syntax "}},
		{"a comma at the end", replace(`"1.0.2"`, `"1.0.2",`), []string{"error json-syntax "}},
		{"more after the value", npm("") + "{}", []string{"error json-syntax "}},
		{"no UTF-8", "{\"name\": \"\xff\"}", []string{"error json-syntax "}},
		{"empty", "", []string{"error json-syntax "}},
		{"too deep", strings.Repeat("[", 100), []string{"error json-syntax "}},
		{"too large", strings.Repeat(" ", registry.MaxFile+1), []string{"error json-size "}},
		{"an array", "[]", []string{"error type "}},
		{"a member twice", file(`"title": "A", "title": "B", "remotes": [{"type": "sse", "url": "https://example.com/sse"}]`), []string{"error duplicate-member /title"}},

		{"no members", "{}", []string{
			"error required ", "error required ", "error required ", "error required ", "warning nothing-to-use ",
		}},
		{"nothing to use", start + "}", []string{"warning nothing-to-use "}},
		{"wrong types", replace(`"1.0.2"`, `1`), []string{"error type /version"}},
		{"another schema", replace("2025-12-11", "2025-09-29"), []string{"error schema-version /$schema"}},
		{"no schema", replace("https://static.modelcontextprotocol.io", "https://example.com"), []string{"error schema-version /$schema"}},
		{"a member of an older schema", file(`"website_url": "https://example.com", "status": "active"`), []string{
			"warning nothing-to-use ", "error old-member /website_url", "error old-member /status",
		}},
		{"an unknown member", npm(`"x/y~": 1`), []string{"warning unknown-member /packages/0/x~1y~0"}},

		{"a name without slash", replace("io.github.ada/words", "words"), []string{"error name /name"}},
		{"two slashes", replace("io.github.ada/words", "io.github/ada/words"), []string{"error name /name"}},
		{"no domain", replace("io.github.ada/words", "ada/words"), []string{"error name-namespace /name"}},
		{"an empty label", replace("io.github.ada/words", "io..ada/words"), []string{"error name-namespace /name"}},
		{"a space in the name", replace("io.github.ada/words", "io.github.ada/my words"), []string{"error name /name"}},
		{"a name of one letter", replace("io.github.ada/words", "io.github.ada/w"), []string{"error name /name"}},
		{"a long name", replace("io.github.ada/words", "io.github.ada/"+strings.Repeat("w", 190)), []string{"error too-long /name"}},
		{"a short name", replace("io.github.ada/words", "/w"), []string{"error too-short /name"}},

		{"no description", replace("Counts words.", ""), []string{"error empty /description"}},
		{"a long description", replace("Counts words.", strings.Repeat("ö", 101)), []string{"error too-long /description"}},
		{"the longest description", replace("Counts words.", strings.Repeat("ö", 100)), nil},
		{"a blank title", replace(`"version"`, `"title": "  ", "version"`), []string{"error empty /title"}},

		{"latest", replace("1.0.2", "latest"), []string{"error version-latest /version"}},
		{"a version of its own kind", replace("1.0.2", "2026a"), []string{"warning version-not-semantic /version"}},
		{"a version with a space", replace("1.0.2", "1.0.2 "), []string{"error version-space /version"}},

		{"a website over http", replace(`"version"`, `"websiteUrl": "http://example.com", "version"`), []string{"error url-scheme /websiteUrl"}},
		{"a relative website", replace(`"version"`, `"websiteUrl": "/words", "version"`), []string{"error url /websiteUrl"}},
		{"a website with a password", replace(`"version"`, `"websiteUrl": "https://a:b@example.com", "version"`), []string{"error url-user /websiteUrl"}},
		{"a repository", replace(`"version"`, `"repository": {"url": "https://github.com/ada/words", "source": "github", "subfolder": "src/words"}, "version"`), nil},
		{"an empty repository", replace(`"version"`, `"repository": {}, "version"`), []string{"error required /repository", "error required /repository"}},
		{"another host", replace(`"version"`, `"repository": {"url": "https://sr.ht/~ada/words", "source": "sourcehut"}, "version"`), []string{"error repository-source /repository/source"}},
		{"a repository elsewhere", replace(`"version"`, `"repository": {"url": "https://gitlab.com/ada/words", "source": "github"}, "version"`), []string{"error repository-url /repository/url"}},
		{"a repository at no URL", replace(`"version"`, `"repository": {"url": "", "source": "github"}, "version"`), []string{"error repository-url /repository/url"}},
		{"a folder above", replace(`"version"`, `"repository": {"url": "https://github.com/ada/words", "source": "github", "subfolder": "../x"}, "version"`), []string{"error repository-subfolder /repository/subfolder"}},
		{"icons", replace(`"version"`, `"icons": [{"src": "https://example.com/i.png", "mimeType": "image/gif", "sizes": ["48"], "theme": "blue"}, {"src": "data:x"}, {}, 1], "version"`), []string{
			"error enum /icons/0/mimeType", "error icon-size /icons/0/sizes/0", "error enum /icons/0/theme", "error url-scheme /icons/1/src", "error required /icons/2", "error type /icons/3",
		}},
		{"metadata", replace(`"version"`, `"_meta": {"com.example": {}, "io.modelcontextprotocol.registry/publisher-provided": {"a": "`+strings.Repeat("x", 4096)+`"}}, "version"`), []string{
			"warning meta-dropped /_meta/com.example", "error too-long /_meta/io.modelcontextprotocol.registry~1publisher-provided",
		}},

		{"a package without anything", file(`"packages": [{}]`), []string{"error required /packages/0", "error required /packages/0", "error required /packages/0"}},
		{"a package that is a string", file(`"packages": ["npm"]`), []string{"error type /packages/0"}},
		{"the same package", file(`"packages": [` + pack("npm", "words", `"version": "1.0.0"`) + "," + pack("npm", "words", `"version": "1.0.0"`) + "]"), []string{"error duplicate-package /packages/1"}},
		{"no version", file(`"packages": [` + pack("pypi", "words", "") + "]"), []string{"error version-missing /packages/0"}},
		{"a package of the latest version", file(`"packages": [` + pack("nuget", "Words", `"version": "latest"`) + "]"), []string{"error version-latest /packages/0/version"}},
		{"an empty version", file(`"packages": [` + pack("nuget", "Words", `"version": ""`) + "]"), []string{"error empty /packages/0/version"}},
		{"a version in the name", file(`"packages": [` + pack("npm", "@ada/words@1.0.2", `"version": "1.0.2"`) + "]"), []string{"error identifier /packages/0/identifier"}},
		{"a space in a name", file(`"packages": [` + pack("npm", "my words", `"version": "1.0.2"`) + "]"), []string{"error identifier /packages/0/identifier"}},
		{"another registry", npm(`"registryBaseUrl": "https://npm.example.com"`), []string{"warning registry-base /packages/0/registryBaseUrl"}},
		{"a registry over http", npm(`"registryBaseUrl": "http://registry.npmjs.org"`), []string{"warning registry-base /packages/0/registryBaseUrl", "error url-scheme /packages/0/registryBaseUrl"}},
		{"an older URL of NuGet", file(`"packages": [` + pack("nuget", "Words", `"version": "1.0.0", "registryBaseUrl": "https://api.nuget.org"`) + "]"), nil},
		{"an unknown type", file(`"packages": [` + pack("brew", "words", "") + "]"), []string{"warning registry-type /packages/0/registryType"}},
		{"an image", file(`"packages": [` + pack("oci", "ghcr.io/ada/words:1.0.2", "") + "]"), nil},
		{"an image with a port and a digest", file(`"packages": [` + pack("oci", "r.example:5000/ada/words@sha256:"+strings.Repeat("a", 64), "") + "]"), nil},
		{"an image without tag", file(`"packages": [` + pack("oci", "r.example:5000/ada/words", "") + "]"), []string{"error version-missing /packages/0/identifier"}},
		{"the latest image", file(`"packages": [` + pack("oci", "ada/words:latest", "") + "]"), []string{"error version-latest /packages/0/identifier"}},
		{"an image with a version", file(`"packages": [` + pack("oci", "ada/words:1", `"version": "1"`) + "]"), []string{"error oci-member /packages/0/version"}},
		{"no image", file(`"packages": [` + pack("oci", "https://ghcr.io/ada/words:1", "") + "]"), []string{"error identifier /packages/0/identifier"}},
		{"a bundle", file(`"packages": [` + pack("mcpb", "https://github.com/ada/words/releases/download/v1/words.mcpb", `"fileSha256": "`+strings.Repeat("a", 64)+`"`) + "]"), nil},
		{"a bundle without hash", file(`"packages": [` + pack("mcpb", "https://github.com/ada/words/releases/download/v1/words.mcpb", "") + "]"), []string{"error hash-missing /packages/0"}},
		{"a bundle with a wrong hash", file(`"packages": [` + pack("mcpb", "https://github.com/a/b.mcpb", `"fileSha256": "`+strings.Repeat("A", 64)+`"`) + "]"), []string{"error hash /packages/0/fileSha256"}},
		{"a bundle elsewhere", file(`"packages": [` + pack("mcpb", "http://example.com/words.zip", `"fileSha256": "`+strings.Repeat("a", 64)+`"`) + "]"), []string{"error url-scheme /packages/0/identifier", "warning bundle-host /packages/0/identifier"}},
		{"a hash of a package of npm", npm(`"fileSha256": "` + strings.Repeat("a", 64) + `"`), []string{"warning hash-unused /packages/0/fileSha256"}},
		{"arguments of no runtime", npm(`"runtimeArguments": [{"type": "positional", "value": "-y"}]`), []string{"warning runtime-hint /packages/0/runtimeArguments"}},

		{"no transport", file(`"packages": [{"registryType": "npm", "identifier": "words", "version": "1.0.0"}]`), []string{"error required /packages/0"}},
		{"an unknown transport", served(`"type": "websocket"`), []string{"error enum /packages/0/transport/type"}},
		{"an empty transport", served(`"type": ""`), []string{"error enum /packages/0/transport/type"}},
		{"a URL of stdio", served(`"type": "stdio", "url": "http://localhost"`), []string{"error stdio-url /packages/0/transport/url", "warning unknown-member /packages/0/transport/url"}},
		{"no URL", served(`"type": "sse"`), []string{"error required /packages/0/transport"}},
		{"a local URL", served(`"type": "streamable-http", "url": "http://localhost:{--port}/{DIR}/{name}"`), nil},
		{"an unknown name", served(`"type": "streamable-http", "url": "http://localhost:{port}/mcp"`), []string{"error variable-unknown /packages/0/transport/url"}},

		{"a local remote", remote(`"type": "sse", "url": "https://127.0.0.1/sse"`), []string{"error url-local /remotes/0/url"}},
		{"a private remote", remote(`"type": "sse", "url": "https://10.1.2.3/sse"`), []string{"error url-local /remotes/0/url"}},
		{"a remote over http", remote(`"type": "sse", "url": "http://example.com/sse"`), []string{"error url-scheme /remotes/0/url"}},
		{"no address", remote(`"type": "sse", "url": "example.com/sse"`), []string{"error url /remotes/0/url"}},
		{"a remote on stdio", remote(`"type": "stdio", "url": "https://example.com"`), []string{"error enum /remotes/0/type"}},
		{"a remote with a password", remote(`"type": "sse", "url": "https://a:b@example.com/sse"`), []string{"error url-user /remotes/0/url"}},
		{"the same URL", file(`"remotes": [{"type": "sse", "url": "https://a.example"}, {"type": "sse", "url": "https://a.example"}]`), []string{"error duplicate-remote /remotes/1"}},
		{"a variable", remote(`"type": "sse", "url": "https://{tenant}.example.com/sse", "variables": {"tenant": {"isRequired": true}}`), nil},
		{"no such variable", remote(`"type": "sse", "url": "https://{tenant}.example.com/sse"`), []string{"error variable-unknown /remotes/0/url"}},
		{"a variable too many", remote(`"type": "sse", "url": "https://example.com/sse", "variables": {"tenant": {"format": "text"}}`), []string{"warning variable-unused /remotes/0/variables/tenant", "error enum /remotes/0/variables/tenant/format"}},
		{"headers", remote(`"type": "sse", "url": "https://example.com/sse", "headers": [{"name": "X-Key"}, {"name": "x-key"}, {"name": "a b"}, {}]`), []string{
			"error duplicate-header /remotes/0/headers/1/name", "error header-name /remotes/0/headers/2/name", "error required /remotes/0/headers/3",
		}},

		{"a variable twice", npm(`"environmentVariables": [{"name": "A"}, {"name": "a"}, {"name": "A"}]`), []string{"error duplicate-variable /packages/0/environmentVariables/2/name"}},
		{"no name of a variable", env(`"name": "A=1"`), []string{"error variable-name /packages/0/environmentVariables/0/name"}},
		{"an odd name of a variable", env(`"name": "a.b"`), []string{"warning variable-name /packages/0/environmentVariables/0/name"}},
		{"a secret", env(`"name": "API_KEY", "isSecret": true, "isRequired": true`), nil},
		{"a secret with a default", env(`"name": "API_KEY", "isSecret": true, "default": "hunter2"`), []string{"error secret-default /packages/0/environmentVariables/0/default"}},
		{"a secret with a value", env(`"name": "API_KEY", "isSecret": true, "value": "hunter2"`), []string{"error secret-value /packages/0/environmentVariables/0/value"}},
		{"a secret made of variables", env(`"name": "AUTH", "isSecret": true, "value": "Bearer {key}", "variables": {"key": {"isSecret": true}}`), nil},
		{"a secret variable with a default", env(`"name": "AUTH", "value": "Bearer {key}", "variables": {"key": {"isSecret": true, "default": "hunter2"}}`), []string{"error secret-default /packages/0/environmentVariables/0/variables/key/default"}},
		{"no mark of a secret", env(`"name": "WORDS_TOKEN"`), []string{"warning secret-unmarked /packages/0/environmentVariables/0/name"}},
		{"an unknown variable in a value", env(`"name": "A", "value": "{b} {\"json\": 1} {}"`), []string{"warning variable-unknown /packages/0/environmentVariables/0/value"}},
		{"a default that is no choice", env(`"name": "A", "default": "c", "choices": ["a", "b", 1]`), []string{"warning default-choice /packages/0/environmentVariables/0/default", "error type /packages/0/environmentVariables/0/choices/2"}},
		{"a default that is no number", env(`"name": "A", "default": "c", "format": "number"`), []string{"warning default-format /packages/0/environmentVariables/0/default"}},
		{"a default beside a value", env(`"name": "A", "default": "c", "value": "d"`), []string{"warning default-unused /packages/0/environmentVariables/0/default"}},
		{"a flag that is a string", env(`"name": "A", "isSecret": "true"`), []string{"error type /packages/0/environmentVariables/0/isSecret"}},

		{"arguments", npm(`"packageArguments": [{"type": "named", "name": "--port", "default": "80"}, {"type": "positional", "valueHint": "dir"}, {"type": "positional", "value": "serve"}]`), nil},
		{"a name with its value", arg(`"type": "named", "name": "--port 80"`), []string{"error argument-name /packages/0/packageArguments/0/name"}},
		{"a value with its name", arg(`"type": "named", "name": "--port", "value": "--port=80"`), []string{"error argument-value /packages/0/packageArguments/0/value"}},
		{"a named one without name", arg(`"type": "named"`), []string{"error required /packages/0/packageArguments/0"}},
		{"a positional one without anything", arg(`"type": "positional"`), []string{"error required /packages/0/packageArguments/0"}},
		{"an argument of no type", arg(`"type": "flag"`), []string{"error enum /packages/0/packageArguments/0/type"}},
		{"an argument twice", npm(`"packageArguments": [{"type": "named", "name": "--a"}, {"type": "named", "name": "--a"}, {"type": "named", "name": "--b"}, {"type": "named", "name": "--b", "isRepeated": true}]`), []string{"error duplicate-argument /packages/0/packageArguments/1/name"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			findings := registry.Check([]byte(tt.text))
			var got []string
			for _, f := range findings {
				got = append(got, string(f.Severity)+" "+f.Code+" "+f.Pointer)
			}
			want, sorted := slices.Sorted(slices.Values(tt.want)), slices.Sorted(slices.Values(got))
			if diff := cmp.Diff(want, sorted); diff != "" {
				t.Errorf("%s\n%s", diff, tt.text)
			}
			checkAll(t, tt.text, findings)
			if bad := slices.ContainsFunc(tt.want, func(w string) bool { return strings.HasPrefix(w, "error") }); registry.Valid(findings) == bad {
				t.Errorf("valid: %t", !bad)
			}
		})
	}
}

func pack(kind, identifier, members string) string {
	if members != "" {
		members = ", " + members
	}
	return `{"registryType": "` + kind + `", "identifier": "` + identifier + `", "transport": {"type": "stdio"}` + members + `}`
}

// served is a file with a package that has a transport of these members.
func served(transport string) string {
	return file(`"packages": [{"registryType": "npm", "identifier": "words", "version": "1.0.2", "transport": {` + transport + `},
    "packageArguments": [{"type": "named", "name": "--port"}, {"type": "positional", "valueHint": "name"}], "environmentVariables": [{"name": "DIR"}]}]`)
}

// checkAll checks what holds of all findings.
func checkAll(t *testing.T, text string, findings []registry.Finding) {
	t.Helper()
	lines := strings.Count(text, "\n") + 1
	for i, f := range findings {
		if f.Code == "" || f.Reason == "" || f.Fix == "" || f.Severity != registry.Error && f.Severity != registry.Warning {
			t.Errorf("something is missing: %+v", f)
		}
		if f.Line < 1 || f.Line > lines || i > 0 && f.Line < findings[i-1].Line {
			t.Errorf("finding %d of a text of %d lines: %+v", i, lines, f)
		}
		if f.Pointer != "" && f.Pointer[0] != '/' {
			t.Errorf("no pointer: %+v", f)
		}
		if strings.Contains(f.Reason+f.Fix, "hunter2") {
			t.Errorf("a secret: %+v", f)
		}
	}
	if len(findings) > 201 {
		t.Errorf("%d findings", len(findings))
	}
}

func TestRanges(t *testing.T) {
	for version, code := range map[string]string{
		"^1.2.3": "version-range", "~1.2": "version-range", ">=1.0.0": "version-range", "<2": "version-range", "=1.0.0": "version-range",
		"1.x": "version-range", "1.2.X": "version-range", "1.2.*": "version-range", "*": "version-range", "1.0 - 2.0": "version-range",
		"1.2 || 1.3": "version-range", ">=1.0 <2.0": "version-range", "[1.0,2.0)": "version-range", "latest": "version-latest",
		"1.0.2": "", "1.0.2-rc.1+x": "", "v1.0.2": "", "1.0.2-x": "",
		"2026.8.31-beta": "", "next": "version-not-semantic", "1.0": "version-not-semantic",
	} {
		got := ""
		for _, f := range registry.Check([]byte(replace("1.0.2", version))) {
			got += f.Code
		}
		if got != code {
			t.Errorf("%s: %q, want %q", version, got, code)
		}
	}
}

func TestLines(t *testing.T) {
	text := "{\r\n  \"name\":\r\n    \"words\",\n\"description\": 1 }"
	var got []string
	for _, f := range registry.Check([]byte(text)) {
		got = append(got, f.Code+" "+f.Pointer+" "+strconv.Itoa(f.Line))
	}
	want := []string{"required  1", "required  1", "nothing-to-use  1", "name /name 3", "type /description 4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// However much is wrong, the findings are bounded.
func TestManyFindings(t *testing.T) {
	text := file(`"packages": [` + strings.Repeat("{},", 1000) + "{}]")
	findings := registry.Check([]byte(text))
	if len(findings) != 201 || findings[len(findings)-1].Code != "too-many" && !slices.ContainsFunc(findings, func(f registry.Finding) bool { return f.Code == "too-many" }) {
		t.Errorf("%d findings", len(findings))
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(npm(""))
	f.Add(served(`"type": "sse", "url": "http://localhost:{--port}"`))
	f.Add(env(`"name": "A", "value": "{b}", "variables": {"b": {"isSecret": true, "default": "hunter2"}}`))
	f.Add("{\"a\":[{}], \"a\":nul")
	f.Add("[[[[1,2,],{\"\":\"\\ud800\"}]]")
	f.Fuzz(func(t *testing.T, text string) {
		findings := registry.Check([]byte(text))
		for _, f := range findings {
			if f.Code == "" || f.Reason == "" || f.Fix == "" || f.Line < 1 || f.Line > strings.Count(text, "\n")+1 {
				t.Errorf("%+v", f)
			}
		}
		if len(findings) > 201 {
			t.Errorf("%d findings", len(findings))
		}
	})
}
