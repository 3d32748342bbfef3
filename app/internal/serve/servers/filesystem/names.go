package filesystem

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
)

// localPath returns the path that an argument, a root of a client or a directory of the command line
// names on Windows or another system. Each is a path, in which "~" is the home directory, or a file
// URI.
func localPath(text string, windows bool) (path string, err error) {
	if len(text) >= len("file://") && strings.EqualFold(text[:len("file://")], "file://") {
		path, err = uriPath(text, windows)
	} else {
		path = expandHome(text)
	}
	if windows {
		path = windowsPath(path)
	}
	return path, err
}

// uriPath returns the path that a file URI names on Windows or another system.
func uriPath(uri string, windows bool) (string, error) {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "", fmt.Errorf("invalid file URI: %w", err)
	case u.Scheme != "file" || u.User != nil || u.Host != "" && !strings.EqualFold(u.Host, "localhost"):
		return "", fmt.Errorf("%q is not the URI of a file on this machine; write file:///path", uri)
	case u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("the file URI %q has a query or a fragment; write ? as %%3F and # as %%23", uri)
	}
	path := u.Path
	if windows && len(path) > 2 && hasDrive(path[1:]) {
		path = path[1:]
	}
	if !strings.HasPrefix(path, "/") && (!windows || !hasDrive(path)) {
		return "", fmt.Errorf("the file URI %q must have an absolute path: write file:///path", uri)
	}
	return path, nil
}

// fileURI is the URI of a file.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// spaces are those that programs write into names of files in the place of a blank, such as the names of
// screenshots on macOS.
var spaces = strings.NewReplacer("\u00a0", " ", "\u202f", " ")

// plainName returns the same for names that differ in nothing but the Unicode form of their letters (NFC,
// NFD) and the kind of their spaces.
func plainName(name string) string { return norm.NFC.String(spaces.Replace(name)) }

// sameName looks for the one entry that a name, which does not exist, means: the one that differs
// from it in nothing but the Unicode form of letters and the kind of spaces. It is "" if no entry is
// like that. Several are an error.
func (d *directories) sameName(ctx context.Context, p place) (string, error) {
	name := filepath.Base(p.rel)
	if !strings.ContainsFunc(name, func(r rune) bool { return r == ' ' || r > 0x7f }) {
		return "", nil
	}
	folder := place{dir: p.dir, rel: filepath.Dir(p.rel), abs: filepath.Dir(p.abs)}
	list, more, err := folder.entries(ctx, d.maxVisited)
	if err != nil {
		return "", servers.Ended(ctx) // the name itself does not exist, in any case
	}
	if more {
		return "", mcp.Errorf("ENOENT: %s does not exist; its directory has more than %d entries, so other forms of the name are not looked for: give the name exactly",
			strconv.QuoteToASCII(name), d.maxVisited)
	}
	wanted := plainName(name)
	var found []string
	steps := servers.NewSteps(ctx)
	for _, e := range list {
		if err := steps.Add(len(e.name)); err != nil {
			return "", err
		}
		if plainName(e.name) == wanted {
			found = append(found, e.name)
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	var shown []string
	for _, name := range found[:min(len(found), maxShown)] {
		shown = append(shown, strconv.QuoteToASCII(name))
	}
	if rest := len(found) - len(shown); rest > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", rest))
	}
	return "", mcp.Errorf("%s does not exist, and several names differ from it only in the Unicode form of letters or in the kind of spaces: %s; give one of them exactly",
		strconv.QuoteToASCII(name), strings.Join(shown, ", "))
}

// checkPath refuses paths that no system has, or this one takes for something else.
func checkPath(path string, most int) error {
	switch {
	case strings.ContainsRune(path, 0):
		return mcp.Errorf("Access denied - the path holds a NUL character")
	case len(path) > most:
		return mcp.Errorf("ENAMETOOLONG: the path has %d bytes, and may have %d", len(path), most)
	case runtime.GOOS == "windows":
		return checkWindowsPath(path)
	}
	return nil
}

// checkWindowsPath refuses names that Windows takes for devices, streams or other names.
func checkWindowsPath(path string) error {
	rest := path
	if hasDrive(path) {
		rest = path[2:]
	}
	for _, e := range strings.FieldsFunc(rest, func(r rune) bool { return r == '/' || r == '\\' }) {
		switch {
		case e == "." || e == "..":
		case strings.ContainsAny(e, `:*?"<>|`):
			return mcp.Errorf("Access denied - %q holds a character that names of files on Windows cannot have", e)
		case strings.TrimRight(e, ". ") != e:
			return mcp.Errorf("Access denied - %q ends with a dot or a space, which Windows leaves out", e)
		case isDevice(e):
			return mcp.Errorf("Access denied - %q is the name of a device on Windows", e)
		}
	}
	return nil
}

// isDevice reports whether Windows takes a name for a device, with any extension.
func isDevice(name string) bool {
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch base = strings.TrimRight(base, " "); base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	if rest, ok := strings.CutPrefix(base, "COM"); ok {
		return isPort(rest)
	}
	rest, ok := strings.CutPrefix(base, "LPT")
	return ok && isPort(rest)
}

func isPort(s string) bool {
	return len(s) == 1 && s[0] >= '0' && s[0] <= '9' || s == "¹" || s == "²" || s == "³"
}

// hasDrive reports whether a path begins with a drive of Windows.
func hasDrive(path string) bool {
	if len(path) < 2 || path[1] != ':' || len(path) > 2 && path[2] != '/' && path[2] != '\\' {
		return false
	}
	c := path[0] | 0x20
	return c >= 'a' && c <= 'z'
}

// windowsPath makes C:\dir of /c/dir, as some shells on Windows write it, and C:\ of C:, which to
// Windows is the working directory on that drive.
func windowsPath(path string) string {
	if len(path) == 2 && hasDrive(path) {
		return path + `\`
	}
	if len(path) < 3 || path[0] != '/' || path[2] != '/' || !hasDrive(path[1:2]+":") {
		return path
	}
	return strings.ToUpper(path[1:2]) + ":" + path[2:]
}

// expandHome puts the home directory in the place of "~".
func expandHome(path string) string {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, path[1:])
}
