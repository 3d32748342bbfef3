package filesystem_test

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/strictjson"
)

// Proves: ruling 45. What the rules of a host call outside of a folder, this server does not read
// inside of it, however the path is written and whether or not the host knows where relative paths
// begin.
func TestRulesReadPathsAsServer(t *testing.T) {
	f := start(t, nil, nil)
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	for _, name := range []string{"private/key", "private/" + composed, "Private/key", composed + "/key", "public/key"} {
		if _, err := filepath.EvalSymlinks(f.path(name)); err != nil { // one name to some file systems
			put(t, f.path(name), "open")
		}
	}
	put(t, f.path("private/key"), secret)
	put(t, f.path("private/"+composed), secret)
	put(t, f.path(composed+"/key"), secret)
	put(t, f.path("my dir/key"), secret)
	dir := filepath.ToSlash(f.dir)
	spellings := []string{
		"private/key", "./private/key", "public/../private/key", "private//key", "/private/key", "../dir/private/key", "private",
		dir + "/private/key", dir + "//private/./key", dir + "/public/../private/key", dir + "/../dir/private/key", dir + "/PRIVATE/key",
		dir + "/private/" + composed, dir + "/private/" + decomposed, dir + "/" + composed + "/key", dir + "/" + decomposed + "/key",
		"file://" + dir + "/private/key", "file:" + dir + "/private/key", "file:private/key", "FILE://localhost" + dir + "/private/key",
		`"` + dir + `/private/key"`, "'" + dir + "/private/key'", `"private/key"`, " " + dir + "/private/key", dir + "/private/key ",
		dir + "/private%2fkey", dir + "/%70rivate/key", "%70rivate/key", "$PWD/private/key", "~/private/key",
		`private\key`, `public\..\private\key`, dir + `\private\key`, dir + `/public\..\private\key`, `C:\private\key`, "C:private/key",
		"\ufeff" + dir + "/private/key", dir + "/private\ufeff", dir + "/pri\u200cvate/key", "/c/private/key", "/cygdrive/c/private/key", "public/key",
		dir + "/my dir/key", dir + "/my\u00a0dir/key", dir + "/my\u202fdir/key", "my\u00a0dir/key", "file://" + dir + "/my%C2%A0dir/key", dir + "/public/key",
	}
	if runtime.GOOS == "windows" {
		drive, rest := strings.ToLower(dir[:1]), dir[2:]
		spellings = append(spellings, "/"+drive+rest+"/private/key", "/cygdrive/"+drive+rest+"/private/key", `\\?\`+f.path("private/key"), rest+"/private/key")
	}
	rule := func(e policy.Effect, folders ...string) *policy.Policy {
		p, err := policy.New([]policy.Rule{{Effect: e, Where: []policy.Predicate{{Pointer: "/path", Op: policy.OpInside, Dirs: folders}}}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	denies, allows := rule(policy.Deny, dir+"/private", dir+"/"+composed, dir+"/my dir"), rule(policy.Allow, dir+"/public")
	reached := 0
	for _, path := range spellings {
		text, failed := call(t.Context(), t, f.client, "read_text_file", args{"path": path})
		inside := !failed && strings.Contains(text, secret)
		if inside {
			reached++
		}
		arguments, err := strictjson.Marshal(args{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		for _, known := range []string{"", f.dir} {
			q := &policy.Query{Server: "files", Name: "read_text_file", Arguments: mcp.RawValue(arguments), Dir: known}
			if v := denies.Decide(q); inside && v.Effect != policy.Deny {
				t.Errorf("%q in %q is read, and not denied: %s", path, known, v.Why())
			}
			if v := allows.Decide(q); inside && v.Effect == policy.Allow {
				t.Errorf("%q in %q is read elsewhere, and allowed: %s", path, known, v.Why())
			}
		}
	}
	if reached < 14 {
		t.Errorf("only %d spellings were read", reached)
	}
}

// Proves: ruling 45. The same for its resources, whose arguments are URIs.
func TestRulesReadURIsAsServer(t *testing.T) {
	f := start(t, nil, nil)
	put(t, f.path("private/key"), secret)
	put(t, f.path("public/key"), "open")
	dir := filepath.ToSlash(f.dir)
	if !strings.HasPrefix(dir, "/") { // a drive
		dir = "/" + dir
	}
	rule := func(e policy.Effect, folder string) *policy.Policy {
		p, err := policy.New([]policy.Rule{{Effect: e, Kind: policy.KindResource, Where: []policy.Predicate{{Pointer: "/uri", Op: policy.OpInside, Dirs: []string{folder}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	denies, allows := rule(policy.Deny, filepath.ToSlash(f.path("private"))), rule(policy.Allow, filepath.ToSlash(f.path("public")))
	reached := 0
	for _, uri := range []string{
		"file://" + dir + "/private/key", "file:" + dir + "/private/key", "FILE://" + dir + "/private/key", "file://localhost" + dir + "/private/key",
		"file:///" + dir + "/private/key", "file://" + dir + "//private/./key", "file://" + dir + "/public/../private/key",
		"file://" + dir + "/%70rivate/key", "file://" + dir + "/%2570rivate/key", "file://" + dir + "/private%2Fkey", "file://" + dir + "%2Fprivate/key",
		"file://" + dir + "/public/%2e%2e/private/key", "file://" + dir + "/public%2f..%2fprivate/key", "file://" + dir + "/public/..%2Fprivate/key",
		"file://" + dir + "/private/key?x=1", "file://" + dir + "/private/key#x", "file://" + dir + "/public?/../private/key",
		"file://" + dir + "/private/key%20", "file://" + dir + "/PRIVATE/key", "file://" + dir + `/public\..\private\key`, "file://x" + dir + "/private/key",
		dir + "/private/key", "file:///private/key", "file:///~/private/key",
	} {
		got, err := f.client.ReadResource(t.Context(), uri, nil)
		inside := err == nil && len(got.Contents) > 0 && strings.Contains(got.Contents[0].Text, secret)
		if inside {
			reached++
		}
		arguments, err := strictjson.Marshal(args{"uri": uri})
		if err != nil {
			t.Fatal(err)
		}
		q := &policy.Query{Kind: policy.KindResource, Server: "files", Name: uri, Arguments: mcp.RawValue(arguments)}
		if v := denies.Decide(q); inside && v.Effect != policy.Deny {
			t.Errorf("%q is read, and not denied: %s", uri, v.Why())
		}
		if v := allows.Decide(q); inside && v.Effect == policy.Allow {
			t.Errorf("%q is read elsewhere, and allowed: %s", uri, v.Why())
		}
	}
	if reached < 4 {
		t.Errorf("only %d URIs were read", reached)
	}
}
