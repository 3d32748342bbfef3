package host_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// What ext/skills has is what a host takes.
var _ host.SkillLoader = skills.Loader{}

const pdfURI = "skill://pdf/SKILL.md"

// skillDoc is a SKILL.md.
func skillDoc(name, more string) string {
	return "---\nname: " + name + "\ndescription: What " + name + " is for.\n" + more + "---\n# " + name + "\nRead `references/FORMS.md`.\n"
}

// pdfSkill are the files of a skill and one that is nested in it.
func pdfSkill() map[string]string {
	return map[string]string{
		"pdf/SKILL.md": skillDoc("pdf", "allowed-tools: Bash(*)\n"), "pdf/references/FORMS.md": "the forms",
		"pdf/parts/SKILL.md": skillDoc("parts", ""),
	}
}

// A skillServer is a server with skills that can be changed.
type skillServer struct {
	*server.Server
	catalog *skills.Catalog

	mu    sync.Mutex
	files map[string]string
	asked []string // methods and URIs
}

// skillsOf makes a server with skills, for the length of the test.
func skillsOf(t *testing.T, files map[string]string, features ...server.Feature) *skillServer {
	t.Helper()
	s := &skillServer{Server: serverOf(t, features...), files: files}
	source := skills.SourceFunc(func(ctx context.Context, add func(skills.Bundle)) error {
		return s.source().Skills(ctx, add)
	})
	var err error
	if s.catalog, err = skills.Enable(s.Server, source, &skills.Options{Logger: slog.New(slog.DiscardHandler), Revisions: server.AllRevisions}); err != nil {
		t.Fatal(err)
	}
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			s.note(c)
			return next(c)
		}
	})
	return s
}

// source are the files of now.
func (s *skillServer) source() skills.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	fsys := make(fstest.MapFS, len(s.files))
	for name, text := range s.files {
		fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return skills.FS(fsys)
}

// note keeps what is asked for.
func (s *skillServer) note(c *server.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := c.Method(); strings.HasPrefix(m, "skills/") || strings.HasPrefix(m, "resources/read") {
		raw, _ := c.Param("uri")
		s.asked = append(s.asked, strings.TrimSpace(m+" "+strings.Trim(string(raw), `"`)))
	}
}

// change writes files, an empty text removes one, and reads the skills again.
func (s *skillServer) change(t *testing.T, files map[string]string) {
	t.Helper()
	s.mu.Lock()
	for name, text := range files {
		if s.files[name] = text; text == "" {
			delete(s.files, name)
		}
	}
	s.mu.Unlock()
	if err := s.catalog.Reload(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// requests are the methods that were asked for, with their URIs, after those of list.
func (s *skillServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, r := range s.asked {
		if r != "skills/list" {
			list = append(list, r)
		}
	}
	return list
}

// skillHost makes a host that knows skills, with servers, for the length of the test.
func skillHost(t *testing.T, o *host.Options, servers map[string]*skillServer) *host.Host {
	t.Helper()
	if o.Skills == nil {
		o.Skills = skills.Loader{}
	}
	o.Extensions = []client.Extension{skills.Extension()}
	o.StartWait = 10 * time.Second
	h := newHost(t, o, nil)
	for name, s := range servers {
		if err := h.Add(host.Server{Name: name, Key: "entry of " + name, Dialer: mem.New(s.Server, nil), Origin: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// load is a turn that loads a skill.
func load(server, uri string) turn {
	return use("load_skill", fmt.Sprintf(`{"server":%q,"uri":%q}`, server, uri))
}

// readFile is a turn that reads a file of a skill.
func readFile(server, uri, path string) turn {
	return use("read_skill_file", fmt.Sprintf(`{"server":%q,"uri":%q,"path":%q}`, server, uri, path))
}

// ask sends a text and fails the test if the run fails.
func ask(t *testing.T, s *host.Session) *host.RunEndRecord {
	t.Helper()
	_, end, err := s.Ask(t.Context(), "please")
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// answering approves questions with an offer, each by its number; 0 is this time only.
func answering(offers ...int) func(*host.Question) host.Answer {
	n := 0
	return func(*host.Question) host.Answer {
		a := host.Answer{Action: host.Approve}
		if n < len(offers) {
			a.Offer = offers[n]
		}
		n++
		return a
	}
}

// toolSpec is the description of a tool as the model was last told of it, or "".
func (m *scripted) toolSpec(name string) string {
	requests := m.requests()
	for _, t := range requests[len(requests)-1].Tools {
		if t.Name == name {
			return t.Description
		}
	}
	return ""
}

// allowSkills is a rule that allows all skills of a server.
func allowSkills(t *testing.T, server string) *policy.Policy {
	t.Helper()
	return policyFrom(t, fmt.Sprintf(`{"effect":"allow","kind":"skill","server":%q}`, server))
}

// A madeUp loader lists entries that a test made up.
type madeUp struct {
	skills.Loader
	list func(yield func(mcp.RawValue, error) bool)
}

func (m madeUp) List(context.Context, *client.Client) iter.Seq2[mcp.RawValue, error] { return m.list }
