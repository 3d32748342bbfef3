package skills

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// ID is the identifier of the extension.
const ID = "io.modelcontextprotocol/skills"

// What the extension promises that every host loads.
const (
	// MaxFiles is the most files of a skill.
	MaxFiles = 512
	// MaxBytes is the most bytes of all files of a skill together.
	MaxBytes = 16 << 20
)

const (
	methodList      = "skills/list"
	methodGet       = "skills/get"
	methodDirectory = "resources/directory/read"

	// skillFile is the file that makes a skill of a folder.
	skillFile = "SKILL.md"
	// dynamic is what resources says for content that is made anew each time.
	dynamic = "dynamic"
)

// A Skill is the entry of a skill: its frontmatter, and all its files with their
// digests. An entry of [List] and [Get] keeps the JSON that the server sent, and
// encodes as it. A Skill is not changed by this package and may be read by many
// goroutines.
//
// SEP-2640, Skill Entries.
type Skill struct {
	// URI is that of the skill's SKILL.md, for example "skill://refunds/SKILL.md".
	URI string
	// Frontmatter is that of SKILL.md, a JSON object.
	Frontmatter mcp.RawValue
	// Files are all files of the skill, SKILL.md among them; nil if Dynamic.
	Files []File
	// Dynamic says that the files are made anew each time, so that their content
	// cannot be checked.
	Dynamic bool
	// Meta is `_meta` of the entry.
	Meta mcp.Meta

	raw  mcp.RawValue // as it was sent
	flaw string       // what is wrong with its members
}

// A File is one file of a skill.
type File struct {
	// URI is that of the file, which resources/read takes.
	URI string `json:"uri"`
	// Digest is "sha256:" and 64 lower-case hexadecimal digits.
	Digest string `json:"digest"`
	// Size is the number of bytes.
	Size int64 `json:"size"`
}

// Name is the skill's name in its frontmatter. It is a label: several skills may have
// the same.
func (s *Skill) Name() string { return s.text("name") }

// Description says what the skill is for, in the words of its author.
func (s *Skill) Description() string { return s.text("description") }

// text is a member of the frontmatter that is a string, or "".
func (s *Skill) text(name string) string {
	var text string
	if o, err := strictjson.ParseObject(s.Frontmatter, deep); err == nil {
		if raw, ok := o.Member(name); ok {
			_ = strictjson.Unmarshal(raw, &text) // another type is no text
		}
	}
	return text
}

// deep is for values of a message, which was bounded as a whole.
var deep = &strictjson.Options{MaxDepth: 512}

// file returns the file with that URI.
func (s *Skill) file(uri string) (*File, bool) {
	for i := range s.Files {
		if s.Files[i].URI == uri {
			return &s.Files[i], true
		}
	}
	return nil, false
}

// MarshalJSON encodes the entry: as it was sent, or of its fields if it is new.
func (s *Skill) MarshalJSON() ([]byte, error) {
	if s.raw != nil {
		return s.raw, nil
	}
	return encodeSkill(s)
}

// encodeSkill encodes an entry of its fields.
func encodeSkill(s *Skill) (mcp.RawValue, error) {
	w := wireSkill{URI: s.URI, Frontmatter: s.Frontmatter, Resources: mcp.RawValue(`"` + dynamic + `"`), Meta: s.Meta}
	if !s.Dynamic {
		var err error
		if w.Resources, err = strictjson.Marshal(s.Files); err != nil {
			return nil, fmt.Errorf("entry of %s: %w", s.URI, err)
		}
	}
	raw, err := strictjson.Marshal(&w)
	if err != nil {
		return nil, fmt.Errorf("entry of %s: %w", s.URI, err)
	}
	return raw, nil
}

// wireSkill is a Skill in a message.
type wireSkill struct {
	URI         string       `json:"uri"`
	Frontmatter mcp.RawValue `json:"frontmatter"`
	Resources   mcp.RawValue `json:"resources"`
	Meta        mcp.Meta     `json:"_meta,omitzero"`
}

// UnmarshalJSON decodes an entry. An object that is no valid entry is no error here:
// [Skill.Check] tells what is wrong with it, and nothing of it is ever loaded.
func (s *Skill) UnmarshalJSON(data []byte) error {
	if _, err := strictjson.ParseObject(data, deep); err != nil {
		return err
	}
	*s = Skill{raw: append(mcp.RawValue(nil), data...)}
	s.decode()
	return nil
}

// decode sets the fields from the JSON, or the flaw.
func (s *Skill) decode() {
	var w wireSkill
	if err := strictjson.Unmarshal(s.raw, &w, deep); err != nil {
		var only struct {
			URI string `json:"uri"`
		}
		_ = strictjson.Unmarshal(s.raw, &only, deep) // so that the entry can be named
		s.URI, s.flaw = only.URI, err.Error()
		return
	}
	s.URI, s.Frontmatter, s.Meta = w.URI, w.Frontmatter, w.Meta
	switch {
	case len(w.Resources) == 0:
		s.flaw = "resources is missing"
	case string(w.Resources) == `"`+dynamic+`"`:
		s.Dynamic = true
	case w.Resources[0] != '[':
		s.flaw = `resources is neither an array nor "dynamic"`
	default:
		s.decodeFiles(w.Resources)
	}
}

// decodeFiles decodes resources, an array.
func (s *Skill) decodeFiles(list mcp.RawValue) {
	var files []wireFile
	if err := strictjson.Unmarshal(list, &files, deep); err != nil {
		s.flaw = "resources" + err.Error()
		return
	}
	s.Files = make([]File, len(files))
	for i, f := range files {
		if f.Size == nil {
			s.flaw = fmt.Sprintf("resources/%d: size is missing", i)
			return
		}
		s.Files[i] = File{URI: f.URI, Digest: f.Digest, Size: *f.Size}
	}
}

type wireFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   *int64 `json:"size"`
}

// An EntryError says why an entry is invalid. Nothing of it is loaded.
type EntryError struct {
	// URI is what the entry gives, perhaps nothing.
	URI string
	// Reason says what is wrong.
	Reason string
}

// Error names the skill and what is wrong with its entry.
func (e *EntryError) Error() string {
	return fmt.Sprintf("skills: the entry of %q is invalid: %s", e.URI, e.Reason)
}

// A LimitError says that a skill or a catalog is larger than a limit.
type LimitError struct {
	// Name is the skill, its URI or path, or what else is too large.
	Name string
	// What is counted: "files" or "bytes".
	What string
	// Max is the limit, Option the name of the option that changes it, if there is
	// one.
	Max    int64
	Option string
}

// Error names the skill and the limit.
func (e *LimitError) Error() string {
	text := fmt.Sprintf("skills: %s has more than %d %s", e.Name, e.Max, e.What)
	if e.Option != "" {
		text += fmt.Sprintf(" (%s): make it smaller, or raise the limit for hosts that take more", e.Option)
	}
	return text
}

// Check says why the entry must not be loaded: an [EntryError], or a [LimitError] for
// one beyond [MaxFiles] or [MaxBytes], or nil. It asks no server.
//
// SEP-2640, Resources: an entry with resources that are no array and not "dynamic"
// "is invalid, and hosts MUST NOT load it".
func (s *Skill) Check() error {
	if reason := s.invalid(); reason != "" {
		return &EntryError{URI: s.URI, Reason: reason}
	}
	var total int64
	for _, f := range s.Files {
		total += min(f.Size, MaxBytes+1)
	}
	switch {
	case len(s.Files) > MaxFiles:
		return &LimitError{Name: s.URI, What: "files", Max: MaxFiles}
	case total > MaxBytes:
		return &LimitError{Name: s.URI, What: "bytes", Max: MaxBytes}
	}
	return nil
}

// invalid says what is wrong with the entry, or "".
func (s *Skill) invalid() string {
	if s.flaw != "" {
		return s.flaw
	}
	dir, err := directoryOf(s.URI)
	if err != nil {
		return err.Error()
	}
	if _, err := strictjson.ParseObject(s.Frontmatter, deep); err != nil {
		return "frontmatter: " + err.Error()
	}
	name := s.Name()
	if err := checkName(name); err != nil {
		return "frontmatter: " + err.Error()
	}
	if last := dir[strings.LastIndexByte(dir, '/')+1:]; last != name {
		return fmt.Sprintf("its name is %q, but its folder in the URI %q", name, last)
	}
	if s.Description() == "" {
		return "frontmatter: it has no description"
	}
	if s.Dynamic {
		return ""
	}
	return s.invalidFiles(dir)
}

// invalidFiles says what is wrong with the list of files, or "".
func (s *Skill) invalidFiles(dir string) string {
	seen := make(map[string]bool, len(s.Files))
	for _, f := range s.Files {
		switch {
		case !strings.HasPrefix(f.URI, dir+"/") || checkURI(f.URI) != nil:
			return fmt.Sprintf("the file %q is not below %s", f.URI, dir)
		case seen[f.URI]:
			return fmt.Sprintf("the file %q is there twice", f.URI)
		case !isDigest(f.Digest):
			return fmt.Sprintf("the digest of %q is not sha256: and 64 lower-case hexadecimal digits", f.URI)
		case f.Size < 0:
			return fmt.Sprintf("the size of %q is negative", f.URI)
		}
		seen[f.URI] = true
	}
	if !seen[s.URI] {
		return "its files do not have its SKILL.md"
	}
	return ""
}

// isDigest reports whether a text has the form of a digest.
func isDigest(text string) bool {
	hex, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}
