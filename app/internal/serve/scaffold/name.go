package scaffold

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Bounds of names. The registry of servers takes 200 characters, of which a namespace needs some.
const (
	maxName   = 64
	maxModule = 200
)

var (
	name     = regexp.MustCompile(`^[a-z][a-z0-9_-]*[a-z0-9]$`)
	major    = regexp.MustCompile(`^v[0-9]+$`)
	element  = regexp.MustCompile(`^[A-Za-z0-9_~-]([A-Za-z0-9._~-]*[A-Za-z0-9_~-])?$`)
	shortDOS = regexp.MustCompile(`~[0-9]+$`)
)

// reserved are names of devices of Windows, which no file and no folder can have.
var reserved = []string{
	"con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
}

// taken are names that mean something else to the go command at the end of a module's path.
var taken = []string{"internal", "vendor", "testdata", "all", "std", "cmd", "main", "test"}

// CheckName says why a server cannot have a name: it is the name of a program and a folder, the last
// element of a module's path, and the second part of a name in the registry of servers.
func CheckName(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("the name is empty")
	case len(s) > maxName:
		return fmt.Errorf("the name has %d characters; at most %d are taken", len(s), maxName)
	case !name.MatchString(s):
		return fmt.Errorf("the name %q must have two or more characters: letters, digits, - or _, in lower case ASCII, a letter first and a letter or digit last%s", s, instead(s))
	case major.MatchString(s):
		return fmt.Errorf("the name %q is a version to the go command; take another", s)
	case slices.Contains(reserved, s):
		return fmt.Errorf("the name %q is a device to Windows; take another", s)
	case slices.Contains(taken, s):
		return fmt.Errorf("the name %q has a meaning to the go command; take another", s)
	}
	return nil
}

// instead suggests a name that is like s, or nothing.
func instead(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	if like := strings.Join(words, "-"); like != s && CheckName(like) == nil {
		return fmt.Sprintf(", such as %s", like)
	}
	return ""
}

// CheckModule says why a module cannot have a path (go.dev/ref/mod, "Module paths").
func CheckModule(path string) error {
	if len(path) > maxModule {
		return fmt.Errorf("the path of the module has %d characters; at most %d are taken", len(path), maxModule)
	}
	if path == Library {
		return fmt.Errorf("the path of the module is that of the library; take one of your own, such as github.com/ada/words")
	}
	elements := strings.Split(path, "/")
	if slices.Contains([]string{"std", "cmd"}, elements[0]) {
		return fmt.Errorf("the path of the module %q begins like one of Go itself; begin with a host, such as github.com/ada/words", path)
	}
	for _, e := range elements {
		stem, _, _ := strings.Cut(e, ".")
		if !element.MatchString(e) || shortDOS.MatchString(stem) || slices.Contains(reserved, strings.ToLower(stem)) {
			return fmt.Errorf("the path of the module %q cannot have the part %q: write it like github.com/ada/words", path, e)
		}
	}
	return nil
}
