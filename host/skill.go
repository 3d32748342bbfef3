package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/schematext"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// A SkillLoader knows the extension of skills: how servers list them, and how their files
// are read and compared with their entries. An entry is passed on as the server sent it.
// skills.Loader of package ext/skills is one. Its methods may be called by many goroutines
// at once.
type SkillLoader interface {
	// Offers reports whether the server has skills, by what it declared.
	Offers(c *client.Client) bool
	// List yields the entries that the server lists, also those that are not valid. It
	// reads no file. An error ends the list.
	List(ctx context.Context, c *client.Client) iter.Seq2[mcp.RawValue, error]
	// Get asks for the entry of the skill whose SKILL.md has a URI, listed or not. An
	// entry that must not be loaded is an error.
	Get(ctx context.Context, c *client.Client, uri string) (mcp.RawValue, error)
	// Check says why an entry must not be loaded, or returns nil. It asks no server.
	Check(entry mcp.RawValue) error
	// Load reads the SKILL.md of an entry, and returns its text if it is what the entry
	// says.
	Load(ctx context.Context, c *client.Client, entry mcp.RawValue) (text string, err error)
	// Read reads a file by its path in the skill, and returns it if it is what the entry
	// says.
	Read(ctx context.Context, c *client.Client, entry mcp.RawValue, path string) (uri, mimeType string, data []byte, err error)
	// Differs reports whether an error of Load or Read says that something is not what
	// the entry says, or is not in it.
	Differs(err error) bool
}

// A SkillEntry is what a server says of a skill: untrusted.
type SkillEntry struct {
	// URI is that of the skill's SKILL.md. It names the skill within its server.
	URI string `json:"uri"`
	// Name and Description are those of its frontmatter. Several skills may have the
	// same name.
	Name        string `json:"name"`
	Description string `json:"description"`
	// Files are all files of the skill; none if it is Dynamic: then they are made anew
	// by each read, and cannot be compared with anything.
	Files   []SkillFile `json:"files,omitzero"`
	Dynamic bool        `json:"dynamic,omitzero"`
	// AllowedTools is what the frontmatter asks for as "allowed-tools", as JSON, or
	// empty. It is never granted.
	AllowedTools string `json:"allowedTools,omitzero"`
}

// A SkillFile is a file of a skill.
type SkillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	// Size is the number of bytes.
	Size int64 `json:"size"`
}

// A Skill is a skill of one server. Its identity is the pair of the server's name in this
// host and the URI.
type Skill struct {
	// Server is the name of the server in this host.
	Server string
	SkillEntry
	// Hidden says that the policy denies the skill, so that the model is not told of it.
	Hidden bool
	// Err says why the skill cannot be loaded, nil if it can. Only a person is told of
	// such a skill.
	Err error

	pinServer string // see Server.pinServer
	key       string // Server.Key
	raw       mcp.RawValue
	front     mcp.RawValue // in its canonical form
	digest    string
}

// Bounds of what is taken from entries of skills.
const (
	maxSkillName    = 64
	maxSkillText    = 2 << 10 // of a description
	maxSkillURI     = 2 << 10
	maxSkillEntry   = 1 << 20 // 512 files have room
	maxAllowedTools = 400
)

// newSkill reads an entry. flaw says why the loader refuses it, or is nil.
func newSkill(spec *Server, raw mcp.RawValue, flaw error) *Skill {
	k := &Skill{Server: spec.Name, Err: flaw, pinServer: spec.pinServer(), key: spec.Key, raw: raw}
	var in struct {
		URI         string       `json:"uri"`
		Frontmatter mcp.RawValue `json:"frontmatter"`
		Resources   mcp.RawValue `json:"resources"`
	}
	if len(raw) > maxSkillEntry {
		k.raw, k.Err = nil, cmp.Or(k.Err, fmt.Errorf("its entry has more than %d bytes", maxSkillEntry))
		return k
	}
	if err := wire.Decode(slices.Clone(raw), &in); err != nil {
		k.Err = cmp.Or(k.Err, err)
	}
	k.URI = bounded(in.URI, maxSkillURI)
	k.frontmatter(in.Frontmatter)
	if len(in.URI) > maxSkillURI {
		k.Err = cmp.Or(k.Err, fmt.Errorf("its URI has more than %d bytes", maxSkillURI))
	}
	if k.Dynamic = string(in.Resources) == `"dynamic"`; !k.Dynamic && k.Err == nil {
		k.Err = wire.Decode(slices.Clone(in.Resources), &k.Files)
	}
	slices.SortFunc(k.Files, func(a, b SkillFile) int { return cmp.Compare(a.URI, b.URI) })
	k.digest = k.digestOf()
	return k
}

// frontmatter reads what is shown of the frontmatter.
func (k *Skill) frontmatter(raw mcp.RawValue) {
	k.front = mcp.RawValue(schematext.Canonical(raw))
	list, _ := members(raw) // what is no object has none
	for _, m := range list {
		switch m.name {
		case "name":
			s, _ := text(m.value)
			k.Name = bounded(s, maxSkillName)
		case "description":
			s, _ := text(m.value)
			k.Description = bounded(s, maxSkillText)
		case "allowed-tools":
			k.AllowedTools = bounded(schematext.Canonical(m.value), maxAllowedTools)
		}
	}
}

// A skillDefinition is what a person agrees to in a skill: all of its entry that counts.
type skillDefinition struct {
	URI         string       `json:"uri"`
	Frontmatter mcp.RawValue `json:"frontmatter,omitzero"`
	Files       []SkillFile  `json:"files"`
}

// definition is the JSON form in which a pin keeps the skill.
func (k *Skill) definition() ([]byte, error) {
	return wire.Marshal(map[string]skillDefinition{"skill": {k.URI, k.front, k.Files}})
}

// digestOf is the digest of the sorted set of the URIs and digests of all files, and of
// the frontmatter.
//
// SEP-2640: an approval that is kept "MUST be bound to the entry's resources set (every
// uri and digest) observed at the moment of approval".
func (k *Skill) digestOf() string {
	said := fmt.Appendf(nil, "%q %q %v\n", k.URI, k.front, k.Dynamic)
	for _, f := range k.Files {
		said = fmt.Appendf(said, "%q %q %d\n", f.URI, f.Digest, f.Size)
	}
	sum := sha256.Sum256(said)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// skillPin is the key under which the store has the skill that was agreed to.
func skillPin(pinServer, uri string) PinKey { return PinKey{pinServer, "skill " + uri} }

// pinKey is where the store has what the person agreed to.
func (k *Skill) pinKey() PinKey { return skillPin(k.pinServer, k.URI) }

// changes says how the skill differs from the one that a pin keeps.
func (k *Skill) changes(pin *Pin) []Change {
	before, err := pinnedSkill(pin)
	if err != nil {
		return []Change{{Path: "skill", Kind: ChangeEdited}}
	}
	var d differ
	d.frontmatters(before.Frontmatter, k.front)
	old, now := fileTexts(before.Files), fileTexts(k.Files)
	all := make(map[string]bool)
	for uri := range old {
		all[uri] = true
	}
	d.names(all, setOfFiles(k.Files), func(uri string) { d.value("file "+schematext.Quote(uri), old[uri], now[uri]) })
	list := d.told()
	if len(list) == 0 { // it differs in what is not shown
		list = []Change{{Path: "skill", Kind: ChangeEdited}}
	}
	return list
}

// pinnedSkill reads the skill of a pin.
func pinnedSkill(pin *Pin) (*skillDefinition, error) {
	var d struct {
		Skill *skillDefinition `json:"skill"`
	}
	if err := wire.Decode(slices.Clone(pin.Definition), &d); err != nil {
		return nil, err
	}
	if d.Skill == nil {
		return nil, fmt.Errorf("the pin %q has no skill", pin.Tool)
	}
	return d.Skill, nil
}

// frontmatters compares two objects member by member.
func (d *differ) frontmatters(before, now mcp.RawValue) {
	read := func(raw mcp.RawValue) (map[string]string, map[string]bool) {
		values, names := make(map[string]string), make(map[string]bool)
		list, _ := members(raw) // what is no object has none
		for _, m := range list {
			values[m.name], names[m.name] = schematext.Canonical(m.value), true
		}
		return values, names
	}
	old, oldNames := read(before)
	own, names := read(now)
	d.names(oldNames, names, func(name string) { d.words("frontmatter "+schematext.Quote(name), old[name], own[name]) })
}

// fileTexts say of each file what is compared.
func fileTexts(files []SkillFile) map[string]string {
	texts := make(map[string]string, len(files))
	for _, f := range files {
		texts[f.URI] = fmt.Sprintf("%d bytes, %s", f.Size, f.Digest)
	}
	return texts
}

func setOfFiles(files []SkillFile) map[string]bool {
	set := make(map[string]bool, len(files))
	for _, f := range files {
		set[f.URI] = true
	}
	return set
}

// warnings say in words what is suspicious about a skill, beside all others.
func (c *Catalog) skillWarnings(k *Skill) []string {
	f := flagger{server: k.Server}
	for _, t := range []flagText{{"name", k.Name}, {"description", k.Description}} {
		f.hidden(t)
		f.instructions(flagText{t.path, plainWords(t.text)})
	}
	for _, other := range c.Skills {
		if other.Name != k.Name || other.Server == k.Server && other.URI == k.URI {
			continue
		}
		f.add(FlagSameName, "name", "The server %s has a skill %s too: %s.", quoteFlag(other.Server), quoteFlag(k.Name), quoteFlag(other.URI))
	}
	var list []string
	for _, flag := range f.list {
		list = append(list, flag.Text)
	}
	return list
}

// skill returns the skill of a server with a URI, or nil.
func (c *Catalog) skill(server, uri string) *Skill {
	i := slices.IndexFunc(c.Skills, func(k *Skill) bool { return k.Server == server && k.URI == uri && k.Err == nil })
	if i < 0 {
		return nil
	}
	return c.Skills[i]
}

// FindSkills returns the skills whose name, or URI, is the one that a person wrote, of one
// server.
func (c *Catalog) FindSkills(server, nameOrURI string) []*Skill {
	var list []*Skill
	for _, k := range c.Skills {
		if k.Server == server && (k.Name == nameOrURI || k.URI == nameOrURI) {
			list = append(list, k)
		}
	}
	return list
}

// addSkills adds the skills of the servers. The model may know of those that are valid and
// not hidden.
func (c *Catalog) addSkills(list []*supervisor) {
	var searched []searchable
	for _, s := range list {
		c.Skills = append(c.Skills, s.skills...)
	}
	slices.SortStableFunc(c.Skills, func(a, b *Skill) int { return cmp.Compare(a.Server, b.Server) })
	for _, k := range c.Skills {
		if k.Err == nil && !k.Hidden {
			c.shownSkills = append(c.shownSkills, k)
			searched = append(searched, searchable{k.Server, k.Name, "", k.Description, nil})
		}
	}
	c.skillIndex = newIndex(searched)
}

// skillQuery is the query about a skill.
func (s *Session) skillQuery(server, uri string) *policy.Query {
	return s.query(policy.KindSkill, server, uri, rootArguments(uri))
}

// oneLine is a server's text for a list that a model reads.
func oneLine(s string, limit int) string {
	s, _ = cut(strings.Join(strings.Fields(s), " "), limit)
	return EscapeLine(s)
}
