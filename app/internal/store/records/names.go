package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/secure/precis"

	"github.com/parley-mcp/parley/app/internal/printable"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// NormalName returns the form in which names of users are compared and stored: that of RFC 8265,
// section 3.3, in small letters, with one space between the parts of a name and none around it. A name
// that has no such form, which no new user can have, is returned as it is.
func (d *users) NormalName(name string) string {
	if normal, err := normalName(name); err == nil {
		return normal
	}
	return name
}

func normalName(name string) (string, error) {
	if !goodName(name) {
		return "", errNameForm
	}
	parts := strings.Fields(name)
	for i, part := range parts {
		normal, err := precis.UsernameCaseMapped.String(part)
		if err != nil {
			return "", errNameForm
		}
		parts[i] = normal
	}
	name = strings.Join(parts, " ")
	if name == "" || len(name) > maxName {
		return "", errNameForm
	}
	return name, nil
}

// ErrName says that no user can have a name.
var ErrName = errors.New("this cannot be the name of a user")

// These say why. They do not say which character it is: some cannot be seen.
var (
	errNameForm = fmt.Errorf("%w: it has 1 to %d bytes, of letters, digits and the signs of ASCII", ErrName, maxName)
	errMixed    = fmt.Errorf("%w: it mixes letters of several scripts, and could be taken for another", ErrName)
)

const maxName = 255

// goodName says whether a name could ever be that of a user.
func goodName(name string) bool { return printable.Name(name, maxName) }

// An AlikeError says that a name could be taken for that of a user who is there.
type AlikeError struct {
	// User is the name of that user, which the text does not show.
	User string
}

func (e *AlikeError) Error() string { return "there is a user whose name looks the same" }

// newName returns the normal form of a name that a user is to get, besides those who are there.
func (d *users) newName(ctx context.Context, name string) (string, error) {
	switch _, err := d.FindUser(ctx, name); {
	case err == nil:
		return "", ErrExists
	case !errors.Is(err, issuer.ErrNotFound):
		return "", err
	}
	normal, err := normalName(name)
	if err != nil {
		return "", err
	}
	for part := range strings.FieldsSeq(normal) {
		if !oneScript(part) {
			return "", errMixed
		}
	}
	var alike string
	wanted := look(normal)
	err = d.eachName(ctx, "compare names of users", func(taken string) {
		if alike == "" && look(taken) == wanted {
			alike = taken
		}
	})
	switch {
	case err != nil:
		return "", err
	case alike != "":
		return "", &AlikeError{User: alike}
	}
	return normal, nil
}

// AlikeNames returns the names of users that could be taken for one another, as earlier versions let
// them be: of each group all names, in order. It reads all names.
func (d *users) AlikeNames(ctx context.Context) ([][]string, error) {
	first := map[string]string{} // name of a look
	others := map[string][]string{}
	err := d.eachName(ctx, "look for names of users that are alike", func(name string) {
		l := look(name)
		if _, ok := first[l]; !ok {
			first[l] = name
			return
		}
		others[l] = append(others[l], name)
	})
	if err != nil {
		return nil, err
	}
	var alike [][]string
	for l, names := range others {
		alike = append(alike, append([]string{first[l]}, names...))
	}
	slices.SortFunc(alike, slices.Compare)
	return alike, nil
}

// eachName calls f with the name of each user, in order.
func (d *users) eachName(ctx context.Context, doing string, f func(name string)) error {
	return d.eachRow(ctx, doing, func(row scanner) error {
		var name string
		if err := row.Scan(&name); err != nil {
			return err
		}
		f(name)
		return nil
	}, `SELECT name FROM users ORDER BY name`)
}

// look is what a name looks like: its normal form, if it has one, with Latin letters in the place of
// those of other scripts that can hardly be told from them.
func look(name string) string {
	if normal, err := normalName(name); err == nil {
		name = normal
	}
	return latinLook.Replace(name)
}

// latinLook has the small letters of Cyrillic, Greek and Armenian that look like Latin ones (Unicode
// Technical Standard 39, section 4, has more, which a font may tell apart), and Latin ones that do.
var latinLook = strings.NewReplacer(
	"а", "a", "с", "c", "ԁ", "d", "е", "e", "һ", "h", "і", "i", "ј", "j", "к", "k", "ӏ", "l", "о", "o",
	"р", "p", "ԛ", "q", "ѕ", "s", "ѵ", "v", "ԝ", "w", "х", "x", "у", "y",
	"α", "a", "ι", "i", "κ", "k", "ν", "v", "ο", "o", "ρ", "p", "υ", "u", "χ", "x",
	"հ", "h", "ո", "n", "օ", "o", "ս", "u", "ց", "g", "զ", "q",
	"ı", "i", "ɑ", "a", "ɡ", "g",
)

// oneScript says whether the letters of a name are of one script, or of those that are written
// together (Unicode Technical Standard 39, section 5.2, "Highly Restrictive").
func oneScript(name string) bool {
	var found []string
	for _, c := range name {
		if s := scriptOf(c); s != "" && !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	return len(found) < 2 || slices.ContainsFunc(writtenTogether, func(group []string) bool {
		return !slices.ContainsFunc(found, func(s string) bool { return !slices.Contains(group, s) })
	})
}

var writtenTogether = [][]string{
	{"Latin", "Han", "Hiragana", "Katakana"}, {"Latin", "Han", "Bopomofo"}, {"Latin", "Han", "Hangul"},
}

// scriptOf is the script of a character, or "" for those that all scripts have.
func scriptOf(c rune) string {
	for name, table := range unicode.Scripts {
		if unicode.Is(table, c) {
			if name == "Common" || name == "Inherited" {
				return ""
			}
			return name
		}
	}
	return ""
}
