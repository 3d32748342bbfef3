package skills

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// ErrNoDirectories says that the server does not list directories: it did not declare
// directoryRead. Nothing was sent.
var ErrNoDirectories = errors.New("skills: the server does not list directories (directoryRead)")

// Extension is what a client needs in client.Options.Extensions to use skills. It has no
// settings, and serves every revision in which a server declares the extension.
func Extension() client.Extension {
	return client.Extension{
		ID:        ID,
		Revisions: client.AllRevisions,
		Methods: []client.ExtensionMethod{
			{Name: methodList, Retry: true, Revisions: client.AllRevisions},
			{Name: methodGet, Target: "uri", Retry: true, Revisions: client.AllRevisions},
			{Name: methodDirectory, Target: "uri", Retry: true, Revisions: client.AllRevisions},
		},
	}
}

// List lists the entries of the skills that a server lists, page by page as the loop goes
// on. It reads no file. An entry that is invalid is listed too, for people to see why
// (see [Skill.Check]), and never loaded. An empty list does not mean that there are no
// skills: [Get] asks for one by its URI. An error ends the list; it is a
// [client.NoExtensionError] if the server does not offer skills, and a
// [client.ErrPages] for a list that never ends, or has more than 100,000 entries or
// 64 MiB.
//
// SEP-2640, Listing Skills.
func List(ctx context.Context, c *client.Client) iter.Seq2[*Skill, error] {
	return pages(func(cursor *string) ([]*Skill, *string, error) {
		r, err := client.CallMethod[listedSkills](ctx, c, methodList, listParams{cursor})
		return r.Skills, r.NextCursor, err
	}, func(s *Skill) string { return s.URI }, func(s *Skill) int { return len(s.raw) }, reporter(ctx, c, methodList))
}

// listedSkills is a page of skills/list, as a client sees it.
type listedSkills struct {
	mcp.Page

	Skills []*Skill `json:"skills"`
}

// Validate refuses a page without entries, and entries that are null.
func (l *listedSkills) Validate() error {
	if l.Skills == nil {
		return errors.New("/skills: expected array, got null or nothing")
	}
	for i, s := range l.Skills {
		if s == nil {
			return fmt.Errorf("/skills/%d: expected object, got null", i)
		}
	}
	return nil
}

// Get asks for the entry of the skill whose SKILL.md has a URI, whether the server lists
// it or not, and anew each time. It reads no file. An entry that must not be loaded is an
// error, that of [Skill.Check]; so is one for another URI.
//
// SEP-2640, Getting a Skill.
func Get(ctx context.Context, c *client.Client, uri string) (*Skill, error) {
	if _, err := directoryOf(uri); err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	r, err := client.CallMethod[struct {
		Skill *Skill `json:"skill"`
	}](ctx, c, methodGet, uriParams{uri})
	if err != nil {
		return nil, err
	}
	if r.Skill == nil || r.Skill.URI != uri {
		return nil, &EntryError{URI: uri, Reason: "the server answered with an entry of another skill, or none"}
	}
	if err := r.Skill.Check(); err != nil {
		return nil, err
	}
	return r.Skill, nil
}

// Directory lists the files and directories in a directory of a server, such as the
// folder of a skill: the URI of its SKILL.md without "/SKILL.md". Directories have the
// type inode/directory. What is listed is what the server has now: it never adds to the
// entry of a skill. The error is [ErrNoDirectories] where servers do not have that.
//
// SEP-2640, Reading Directories: "Clients MUST NOT call resources/directory/read against
// a server that has not declared directoryRead".
func Directory(ctx context.Context, c *client.Client, uri string) iter.Seq2[*mcp.Resource, error] {
	var declared settings
	raw := c.Capabilities().Extensions[ID]
	if len(raw) > 0 {
		_ = strictjson.Unmarshal(raw, &declared) // what cannot be read declares nothing
	}
	if err := checkURI(uri); err != nil || !declared.DirectoryRead {
		if err == nil {
			err = ErrNoDirectories
		}
		return func(yield func(*mcp.Resource, error) bool) { yield(nil, err) }
	}
	return pages(func(cursor *string) ([]*mcp.Resource, *string, error) {
		r, err := client.CallMethod[listedFiles](ctx, c, methodDirectory, directoryParams{uri, cursor})
		return r.Resources, r.NextCursor, err
	}, func(r *mcp.Resource) string { return r.URI }, sizeOf, reporter(ctx, c, methodDirectory))
}

// reporter reports what is wrong with the cursors of a list.
func reporter(ctx context.Context, c *client.Client, method string) func(why string) {
	return func(why string) {
		c.Report(ctx, &client.Problem{Method: method, Place: "/nextCursor", Effect: client.Incomplete, Why: why})
	}
}

// sizeOf is about how many bytes a listed file has.
func sizeOf(r *mcp.Resource) int {
	n := len(r.URI) + len(r.Name) + len(r.Title) + len(r.Description) + len(r.MIMEType)
	for key, value := range r.Meta {
		n += len(key) + len(value)
	}
	for _, icon := range r.Icons {
		n += len(icon.Src)
	}
	return n
}

// listedFiles is a page of resources/directory/read, as a client sees it.
type listedFiles struct {
	mcp.Page

	Resources []*mcp.Resource `json:"resources"`
}

// Validate refuses a page without resources, and resources that are null.
func (l *listedFiles) Validate() error {
	if l.Resources == nil {
		return errors.New("/resources: expected array, got null or nothing")
	}
	for i, r := range l.Resources {
		if r == nil {
			return fmt.Errorf("/resources/%d: expected object, got null", i)
		}
	}
	return nil
}
