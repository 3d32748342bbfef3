package skills

import (
	"slices"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// maxPage is about how many bytes of entries a page has: an entry is never split, and a
// page has at least one.
const maxPage = 1 << 20

// listParams are the params of skills/list.
type listParams struct {
	Cursor *string `json:"cursor,omitzero"`
}

// listResult is the result of skills/list.
type listResult struct {
	mcp.ResultBase
	mcp.Cacheable
	mcp.Page

	Skills []mcp.RawValue `json:"skills"`
}

// list serves skills/list.
//
// SEP-2640, Listing Skills: "An entry is atomic, and a skill's resources set is never
// split across pages."
func (c *Catalog) list(call *server.Call, p listParams) (*listResult, error) {
	now := c.now.Load()
	visible := slices.DeleteFunc(slices.Clone(now.skills), func(e *entry) bool { return !call.CanRead(e.skill.URI) })
	entries, next, err := server.Paginate(call, visible, (*entry).key, p.Cursor)
	if err != nil {
		return nil, err
	}
	r := &listResult{Page: next, Skills: make([]mcp.RawValue, 0, len(entries))}
	bytes := 0
	for i, e := range entries {
		text, err := entryFor(call, e)
		if err != nil {
			return nil, err
		}
		if bytes += len(text); bytes > maxPage && i > 0 {
			sealed := call.SealCursor(entries[i-1].key())
			r.NextCursor = &sealed
			break
		}
		r.Skills = append(r.Skills, text)
	}
	if c.now.Load() != now { // its files may be gone, and look as if they were hidden
		return c.list(call, p)
	}
	return r, nil
}

// entryFor is an entry as the caller may see it: a file that is hidden from it does not
// exist, in the entries of skills no more than elsewhere.
func entryFor(call *server.Call, e *entry) (mcp.RawValue, error) {
	hidden := func(f File) bool { return !call.CanRead(f.URI) }
	if !slices.ContainsFunc(e.skill.Files, hidden) {
		return e.text, nil
	}
	own := e.skill
	own.Files = slices.DeleteFunc(slices.Clone(own.Files), hidden)
	return encodeSkill(&own)
}

func (e *entry) key() string { return e.skill.URI }

// uriParams are the params of skills/get.
type uriParams struct {
	URI string `json:"uri"`
}

// getResult is the result of skills/get.
type getResult struct {
	mcp.ResultBase
	mcp.Cacheable

	Skill mcp.RawValue `json:"skill"`
}

// get serves skills/get.
//
// SEP-2640, Getting a Skill.
func (c *Catalog) get(call *server.Call, p uriParams) (*getResult, error) {
	now := c.now.Load()
	e := now.byURI[p.URI]
	if e == nil || !call.CanRead(p.URI) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "no skill is served at %q; skills/list has the URIs", clip(p.URI))
	}
	text, err := entryFor(call, e)
	if err != nil {
		return nil, err
	}
	if c.now.Load() != now {
		return c.get(call, p)
	}
	return &getResult{Skill: text}, nil
}

// clip is a text of a stranger, short enough for a message.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
