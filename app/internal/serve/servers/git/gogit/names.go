package gogit

import (
	"cmp"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/mcp"
)

// CheckText refuses what no name may have: it is what the argument called what holds.
func CheckText(what, text string) error {
	switch {
	case text == "":
		return mcp.Errorf("%s is empty", what)
	case len(text) > maxName:
		return mcp.Errorf("%s is longer than %d bytes", what, maxName)
	case strings.HasPrefix(text, "-"):
		return mcp.Errorf("invalid %s %q: it cannot start with '-'", what, text)
	case !utf8.ValidString(text):
		return mcp.Errorf("invalid %s %q: it is not UTF-8", what, text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return mcp.Errorf("invalid %s %q: it has a control character, such as a line break or NUL", what, text)
	}
	return nil
}

// CheckRevision refuses what is no revision of one object, before anything looks it up.
func CheckRevision(what, rev string) error {
	if err := CheckText(what, rev); err != nil {
		return err
	}
	switch {
	case strings.Contains(rev, "::"):
		return mcp.Errorf("invalid %s %q: remote addresses are not fetched", what, rev)
	case strings.Contains(rev, ".."):
		return mcp.Errorf("invalid %s %q: give one branch, tag or commit, not a range of them", what, rev)
	case strings.Contains(rev, "@{"):
		return mcp.Errorf("invalid %s %q: the reflog is not looked up; give a branch, tag or commit", what, rev)
	case strings.Contains(rev, ":"):
		return mcp.Errorf("invalid %s %q: give a branch, tag or commit, without ':'", what, rev)
	case strings.Contains(strings.NewReplacer("^{commit}", "", "^{}", "").Replace(rev), "^{"):
		return mcp.Errorf("invalid %s %q: of what can stand after '^' in braces, only 'commit' and nothing are understood", what, rev)
	case strings.ContainsAny(rev, "?*[\\ "):
		return mcp.Errorf("invalid %s %q: it has a character that no revision has", what, rev)
	}
	return nil
}

// A Target is what git_diff compares.
type Target struct {
	From string
	To   string // "" for the working tree
	Base bool   // begin at the commit that From and To have in common
}

// ParseTarget reads a target: REVISION, which is compared with the working tree, or FROM..TO or
// FROM...TO, where the name that is missing is HEAD.
func ParseTarget(text string) (Target, error) {
	from, to, base := strings.Cut(text, "...")
	isRange := base
	if !base {
		from, to, isRange = strings.Cut(text, "..")
	}
	if !isRange {
		return Target{From: text}, CheckRevision("target", text)
	}
	t := Target{From: cmp.Or(from, "HEAD"), To: cmp.Or(to, "HEAD"), Base: base}
	return t, cmp.Or(CheckRevision("target", t.From), CheckRevision("target", t.To))
}

// CheckBranchName holds a new branch to the rules of git-check-ref-format.
func CheckBranchName(name string) error {
	if err := CheckText("branch name", name); err != nil {
		return err
	}
	bad := func(why string) error { return mcp.Errorf("invalid branch name %q: %s", name, why) }
	switch {
	case name == "HEAD" || name == "@":
		return bad("it means the current commit")
	case strings.ContainsAny(name, " ~^:?*[\\\x7f"):
		return bad(`it must have no space and none of ~ ^ : ? * [ \`)
	case strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.Contains(name, "//"):
		return bad("it must not have '..', '@{' or '//'")
	case strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.HasSuffix(name, "."):
		return bad("it must not start or end with '/', or end with '.'")
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return bad("no part of it may start with '.' or end with '.lock'")
		}
	}
	return nil
}

// CheckPath refuses paths that no file of a commit has.
func CheckPath(name string) error {
	if err := CheckText("path", name); err != nil {
		return err
	}
	if path.Clean("/"+name) != "/"+strings.TrimSuffix(name, "/") {
		return mcp.Errorf("invalid path %q: it is relative to the repository, without '.', '..' and empty parts", name)
	}
	return nil
}
