package use

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

func (g *group) skillsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "List, show and verify a server's skills",
		Long: `List, show and verify a server's skills: folders with instructions for a model.
Their content is untrusted. These commands run none of it and load none of it
into a model.`,
		Args: kit.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{
		Use:   "list",
		Short: "List the skills, without reading any file",
		Example: `  parley skills list
  parley skills list --json --server https://example.com/mcp`,
		Args: kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.withSkills(cmd.Context(), func(c *client.Client) error { return g.listSkills(cmd.Context(), c) })
		},
	}
	show := &cobra.Command{
		Use:   "show URI [FILE]",
		Short: "Print a SKILL.md or another file of a skill, if it matches the skill's entry",
		Long: `Print the SKILL.md with this URI, or a file that its skill refers to by a
relative path. If a file does not match the skill's entry (listed, size, digest,
frontmatter), Parley does not print it and the exit code is 6.`,
		Example: `  parley skills show skill://table-review/SKILL.md
  parley skills show skill://table-review/SKILL.md references/checklist.md`,
		Args: kit.UsageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withSkills(cmd.Context(), func(c *client.Client) error { return g.showSkill(cmd.Context(), c, args) })
		},
	}
	verify := &cobra.Command{
		Use:   "verify [URI...]",
		Short: "Read every file of the skills and compare it with its entry",
		Long: `Read every file of the skills with these URIs, or of all skills the server lists,
and compare it with the skill's entry: size, digest and frontmatter. The exit
code is 6 if anything differs. The digest comes from the server too, so a correct
digest does not mean that the skill is safe.`,
		Example: `  parley skills verify
  parley skills verify skill://table-review/SKILL.md`,
		RunE: func(cmd *cobra.Command, uris []string) error {
			return g.withSkills(cmd.Context(), func(c *client.Client) error { return g.verifySkills(cmd.Context(), c, uris) })
		},
	}
	cmd.AddCommand(list, show, verify)
	return cmd
}

// withSkills connects the one server, for commands about its skills.
func (g *group) withSkills(ctx context.Context, fn func(c *client.Client) error) error {
	g.Extensions = append(g.Extensions, skills.Extension())
	return g.WithOne(ctx, fn)
}

// allSkills returns the entries that a server lists.
func allSkills(ctx context.Context, c *client.Client) ([]*skills.Skill, error) {
	list := []*skills.Skill{}
	for s, err := range skills.List(ctx, c) {
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// getSkill returns the entry of a skill that the command line names.
func getSkill(ctx context.Context, c *client.Client, uri string) (*skills.Skill, error) {
	var bad *skills.EntryError
	if _, err := (&skills.Skill{URI: uri}).Resolve("SKILL.md"); errors.As(err, &bad) {
		return nil, kit.Usagef("%s; run 'parley skills list' for the URIs", bad.Reason)
	}
	return skills.Get(ctx, c, uri)
}

func (g *group) listSkills(ctx context.Context, c *client.Client) error {
	list, err := allSkills(ctx, c)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.PrintMaskedJSON(struct {
			Skills []*skills.Skill `json:"skills"`
		}{list})
	}
	var t kit.Table
	for _, s := range list {
		about := s.Description()
		if err := s.Check(); err != nil {
			about = "cannot be loaded: " + err.Error()
		}
		t.Add(s.URI, about)
	}
	return g.Print(g.Masked(t.String()))
}

func (g *group) showSkill(ctx context.Context, c *client.Client, args []string) error {
	s, err := getSkill(ctx, c, args[0])
	if err != nil {
		return err
	}
	if len(args) == 1 {
		d, err := skills.Load(ctx, c, s)
		if err != nil {
			return err
		}
		if g.JSON {
			return g.PrintJSON(shownSkill{s, d.Text, d.Verified})
		}
		return g.showFile([]byte(d.Text), d.Verified)
	}
	uri, err := s.Resolve(args[1])
	if err != nil {
		return kit.Usagef("%w", err)
	}
	got, err := skills.Read(ctx, c, s, uri)
	if err != nil {
		return err
	}
	if g.JSON {
		contents := mcp.ResourceContents{URI: got.URI, MIMEType: got.MIMEType, Blob: got.Data}
		if utf8.Valid(got.Data) {
			contents.Text, contents.Blob = string(got.Data), nil
		}
		return g.PrintJSON(shownFile{contents, got.Verified})
	}
	return g.showFile(got.Data, got.Verified)
}

// shownSkill is a skill in the JSON of the command "skills show".
type shownSkill struct {
	Skill    *skills.Skill `json:"skill"`
	Text     string        `json:"text"`
	Verified bool          `json:"verified"`
}

// shownFile is a file of a skill in that JSON.
type shownFile struct {
	File     mcp.ResourceContents `json:"file"`
	Verified bool                 `json:"verified"`
}

// showFile writes a file of a skill as it is, but to a terminal as text.
func (g *group) showFile(data []byte, verified bool) error {
	if !verified {
		g.Note("parley: this skill is dynamic; its files have no digests to compare")
	}
	if g.Streams.OutTerminal {
		return g.Println(string(data))
	}
	if _, err := g.Streams.Out.Write(data); err != nil {
		return fmt.Errorf("writing the file: %w", err)
	}
	return nil
}

// A verifiedSkill is a skill in the JSON of the command "skills verify".
type verifiedSkill struct {
	URI      string         `json:"uri"`
	Files    int            `json:"files"`
	Bytes    int            `json:"bytes"`
	Dynamic  bool           `json:"dynamic,omitzero"`
	Problems []skillProblem `json:"problems"`
}

// A skillProblem is a difference between a skill and its entry.
type skillProblem struct {
	URI    string        `json:"uri"`
	Reason skills.Reason `json:"reason,omitzero"`
	Text   string        `json:"text"`
}

func (g *group) verifySkills(ctx context.Context, c *client.Client, uris []string) error {
	var list []*skills.Skill
	var err error
	if len(uris) == 0 {
		list, err = allSkills(ctx, c)
	}
	for _, uri := range uris {
		var s *skills.Skill
		if s, err = getSkill(ctx, c, uri); err != nil {
			break
		}
		list = append(list, s)
	}
	if err != nil {
		return err
	}
	all := make([]*verifiedSkill, 0, len(list))
	differ := false
	for _, s := range list {
		v, err := verifySkill(ctx, c, s)
		if err != nil {
			return err
		}
		all, differ = append(all, v), differ || len(v.Problems) > 0
	}
	if err := g.printVerified(all); err != nil {
		return err
	}
	if differ {
		return &kit.SilentError{Code: kit.ExitContract}
	}
	return nil
}

// verifySkill reads all files of a skill. It returns an error only if the connection fails; mistakes
// of the server are problems of the skill.
func verifySkill(ctx context.Context, c *client.Client, s *skills.Skill) (*verifiedSkill, error) {
	v := &verifiedSkill{URI: s.URI, Dynamic: s.Dynamic, Problems: []skillProblem{}}
	note := func(uri string, err error) error {
		var differs *skills.VerifyError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &differs):
			v.Problems = append(v.Problems, skillProblem{uri, differs.Reason, err.Error()})
		case errors.As(err, new(*jsonrpc.Error)), connect.IsContract(err):
			v.Problems = append(v.Problems, skillProblem{URI: uri, Text: err.Error()})
		default:
			return err
		}
		return nil
	}
	if err := s.Check(); err != nil {
		return v, note(s.URI, err)
	}
	d, err := skills.Load(ctx, c, s)
	if err == nil {
		v.Files, v.Bytes = 1, len(d.Text)
	}
	if err := note(s.URI, err); err != nil {
		return nil, err
	}
	for _, f := range s.Files {
		if f.URI == s.URI {
			continue
		}
		got, err := skills.Read(ctx, c, s, f.URI)
		if err == nil {
			v.Files, v.Bytes = v.Files+1, v.Bytes+len(got.Data)
		}
		if err := note(f.URI, err); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (g *group) printVerified(all []*verifiedSkill) error {
	if g.JSON {
		return g.PrintMaskedJSON(struct {
			Skills []*verifiedSkill `json:"skills"`
		}{all})
	}
	var t kit.Table
	for _, v := range all {
		plural := "files"
		if v.Files == 1 {
			plural = "file"
		}
		switch {
		case len(v.Problems) > 0:
			t.Add(v.URI, "differs")
		case v.Dynamic:
			t.Add(v.URI, "dynamic: frontmatter verified; its files have no digests to check")
		default:
			t.Add(v.URI, fmt.Sprintf("verified: %d %s, %d bytes", v.Files, plural, v.Bytes))
		}
		for _, problem := range v.Problems {
			g.Note("parley: %s", host.EscapeLine(kit.Shorten(problem.Text, kit.MaxError)))
		}
	}
	return g.Print(g.Masked(t.String()))
}
