package interop_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// skillFolder has a skill of each kind: with CR LF, a byte order mark, bytes that are no
// text, types that YAML's versions read differently, and a folder above it.
const skillFolder = "testdata/skills"

// serveSkills serves skills of ours, or what stands for them, and returns the URL.
func serveSkills(t *testing.T, add func(s *server.Server)) string {
	t.Helper()
	s := server.New("skills", "1.0.0", nil)
	add(s)
	web := httptest.NewServer(streamable.NewHandler(s, nil))
	t.Cleanup(web.Close)
	return web.URL + streamable.Path
}

func ourSkills(t *testing.T) func(s *server.Server) {
	t.Helper()
	return func(s *server.Server) {
		if _, err := skills.Enable(s, skills.Dir(skillFolder), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// skillReport is what peers/skills-client.mjs prints.
type skillReport struct {
	DirectoryRead bool     `json:"directoryRead"`
	Invalid       int      `json:"invalid"`
	Directory     []string `json:"directory"`
	Skills        map[string]struct {
		Same        bool              `json:"same"`
		Frontmatter map[string]any    `json:"frontmatter"`
		Files       map[string]string `json:"files"`
	} `json:"skills"`
}

func skillClient(t *testing.T, url string) skillReport {
	t.Helper()
	cmd := node(t, "skills-client.mjs", url)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var got skillReport
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.Bytes())
	}
	return got
}

// fileOf reads the file of the folder that a URI names.
func fileOf(t *testing.T, uri string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(skillFolder, filepath.FromSlash(strings.TrimPrefix(uri, "skill://"))))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The client of the TypeScript SDK lists, gets, reads and verifies our skills.
func TestSkillsTypeScriptClient(t *testing.T) {
	peersDir(t)
	got := skillClient(t, serveSkills(t, ourSkills(t)))
	if len(got.Skills) != 2 || got.Invalid != 0 || !got.DirectoryRead {
		t.Fatalf("%+v", got)
	}
	for uri, s := range got.Skills {
		if !s.Same {
			t.Errorf("%s: skills/get and skills/list differ", uri)
		}
		for file, data := range s.Files {
			if want := hex.EncodeToString(fileOf(t, file)); data != want {
				t.Errorf("%s: %s, want %s", file, data, want)
			}
		}
	}
	pdf := got.Skills["skill://pdf-processing/SKILL.md"]
	if f := pdf.Frontmatter; len(pdf.Files) != 3 || f["since"] != "2026-07-28" || f["mode"] != 15.0 || f["answer"] != "yes" || f["text"] != "two\nlines\n" {
		t.Errorf("%+v", pdf)
	}
	if want := "skill://acme/refunds/SKILL.md text/markdown"; len(got.Directory) != 1 || got.Directory[0] != want {
		t.Errorf("directory: %q", got.Directory)
	}
}

// It refuses a file that a server of ours has tampered with.
func TestSkillsTypeScriptRefuses(t *testing.T) {
	peersDir(t)
	const uri, text = "skill://pdf/SKILL.md", "---\nname: pdf\ndescription: Forms.\n---\n# Forms\n"
	url := serveSkills(t, func(s *server.Server) {
		s.Add(server.Text(uri, "pdf", strings.Replace(text, "# Forms", "# Farms", 1)))
		entry := mcp.RawValue(fmt.Sprintf(`{"uri":%q,"frontmatter":{"name":"pdf","description":"Forms."},"resources":[{"uri":%q,"digest":"sha256:%x","size":%d}]}`,
			uri, uri, sha256.Sum256([]byte(text)), len(text)))
		o := server.MethodOptions{Anyone: true, Cache: &server.Cache{}}
		s.Extend(server.Extension{ID: skills.ID, Methods: []*server.ExtensionMethod{
			server.Method("skills/list", func(*server.Call, mcp.RawValue) (map[string]any, error) {
				return map[string]any{"skills": []mcp.RawValue{entry}, "ttlMs": 0, "cacheScope": "private"}, nil
			}).With(server.MethodOptions{Anyone: true}),
			server.Method("skills/get", func(*server.Call, mcp.RawValue) (map[string]any, error) {
				return map[string]any{"skill": entry, "ttlMs": 0, "cacheScope": "private"}, nil
			}).With(o),
		}})
	})
	if got := skillClient(t, url).Skills[uri].Files[uri]; got != string(skills.ReasonDigest) {
		t.Errorf("%q, want %q", got, skills.ReasonDigest)
	}
}

// connectSkills connects our client to a server of the TypeScript SDK.
func connectSkills(t *testing.T, args ...string) *client.Client {
	t.Helper()
	url := startServer(t, nil, append([]string{"skills-server.mjs"}, args...)...)
	c, err := client.Connect(bounded(t), streamable.URL(url), &client.Options{DiscoverProbe: patience, Extensions: []client.Extension{skills.Extension()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Our client lists, gets, loads and reads the skills of the TypeScript SDK's server, and
// both make the same entries of one folder.
func TestSkillsTypeScriptServer(t *testing.T) {
	folder, err := filepath.Abs(skillFolder)
	if err != nil {
		t.Fatal(err)
	}
	c := connectSkills(t, folder)
	n := 0
	for s, err := range skills.List(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		d, err := skills.Load(t.Context(), c, s)
		if err != nil || d.Text != string(fileOf(t, s.URI)) {
			t.Errorf("%s: %+v, %v", s.URI, d, err)
		}
		for _, f := range s.Files {
			if got, err := skills.Read(t.Context(), c, s, f.URI); err != nil || !bytes.Equal(got.Data, fileOf(t, f.URI)) {
				t.Errorf("%s: %+v, %v", f.URI, got, err)
			}
		}
	}
	if n != 2 {
		t.Errorf("%d skills", n)
	}
	var names []string
	for r, err := range skills.Directory(t.Context(), c, "skill://pdf-processing") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, r.Name)
	}
	if len(names) != 3 {
		t.Errorf("directory: %q", names)
	}
}

// Our client refuses what that server sends in place of a SKILL.md.
func TestSkillsTypeScriptTampered(t *testing.T) {
	c := connectSkills(t, "--tampered")
	s, err := skills.Get(t.Context(), c, "skill://pdf/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, err = skills.Load(t.Context(), c, s)
	if differs, ok := errors.AsType[*skills.VerifyError](err); !ok || differs.Reason != skills.ReasonDigest {
		t.Errorf("%v", err)
	}
}

// The inspector verifies our skills: it exits with 0 if every digest is right.
func TestSkillsInspector(t *testing.T) {
	peersDir(t)
	target := []string{serveSkills(t, ourSkills(t)), "--transport", "http"}
	verify := node(t, append([]string{inspectorJS, "--cli"}, append(target, "--protocol-era", "modern", "--format", "json", "--quiet",
		"--method", "skills/list", "--verify", "--require-digests")...)...)
	out, err := verify.Output()
	if n := strings.Count(string(out), `"outcome":"verified"`); err != nil || n != 2 { // a line for each skill
		t.Errorf("%v\n%s", err, out)
	}
	var got json.RawMessage
	inspector(t, "modern", target, &got, "--method", "skills/get", "--uri", "skill://acme/refunds/SKILL.md")
	inspector(t, "modern", target, &got, "--method", "resources/directory/read", "--uri", "skill://pdf-processing")
	if !strings.Contains(string(got), "inode/directory") {
		t.Errorf("%s", got)
	}
}
