package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

const skillText = "---\nname: pdf\ndescription: Forms.\n---\n"

// serveSkill builds a server with a skill whose SKILL.md is text, and whose entry is that
// of another text.
func serveSkill(text, described string) mcptest.Build {
	const uri = "skill://pdf/SKILL.md"
	entry := fmt.Sprintf(`[{"uri":%q,"frontmatter":{"name":"pdf","description":"Forms."},"resources":[{"uri":%q,"digest":"sha256:%x","size":%d}]}]`,
		uri, uri, sha256.Sum256([]byte(described)), len(described))
	return serveEntries(entry, server.Text(uri, "pdf", text))
}

func serveEntries(entries string, features ...server.Feature) mcptest.Build {
	return func(tb testing.TB, o *server.Options) *server.Server {
		s := serve(features...)(tb, o)
		list := server.Method("skills/list", func(*server.Call, mcp.RawValue) (map[string]mcp.RawValue, error) {
			return map[string]mcp.RawValue{"skills": mcp.RawValue(entries)}, nil
		}).With(server.MethodOptions{Anyone: true})
		s.Extend(server.Extension{ID: skills.ID, Methods: []*server.ExtensionMethod{list}})
		return s
	}
}

// The scenarios end well when the right check has failed, and tell when it has not.
func TestSkillScenarios(t *testing.T) {
	longer, changed, other := skillText+"x", strings.Replace(skillText, "Forms", "Torms", 1), strings.Replace(skillText, "Forms", "Other", 1)
	for _, test := range []struct {
		scenario string
		build    mcptest.Build
		failure  string
	}{
		{"sep-2640-client-no-prefetch", serveSkill(skillText, skillText), ""},
		{"sep-2640-client-no-prefetch", serveEntries("[]"), "no skill is listed"},
		{"sep-2640-client-no-prefetch", serve(), "capability not declared"},
		{"sep-2640-client-verify-size", serveSkill(longer, skillText), ""},
		{"sep-2640-client-verify-digest", serveSkill(changed, skillText), ""},
		{"sep-2640-client-verify-frontmatter", serveSkill(other, other), ""},
		{"sep-2640-client-verify-digest", serveSkill(longer, skillText), "it must fail by its digest"},
		{"sep-2640-client-verify-digest", serveSkill(skillText, skillText), "it must fail by its digest"},
		{"sep-2640-client-verify-size", serveEntries("[]"), "no skill is listed"},
		{"sep-2640-client-verify-size", serve(), "capability not declared"},
	} {
		t.Run(test.scenario, func(t *testing.T) {
			mcptest.EachEra(t, test.build, options(), func(t *testing.T, _ mcptest.Era, c *client.Client) {
				err := scenarios[test.scenario](t.Context(), c)
				if (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
					t.Errorf("got %v, want %q", err, test.failure)
				}
			}, mcptest.Stateless)
		})
	}
}
