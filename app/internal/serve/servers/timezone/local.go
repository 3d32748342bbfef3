package timezone

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrLocalUnknown says that the system does not tell the name of its time zone.
var ErrLocalUnknown = errors.New("the system does not name its time zone")

// LocalName returns the name of the local time zone in the IANA database. It is set by the environment
// variable TZ, or else by the system's settings, which have no such name on Windows. If neither names a
// zone, it is UTC. The error says what is not understood or known, and which zone is used instead. The
// name is valid even so.
func LocalName() (string, error) {
	return localName(os.Getenv("TZ"), "/etc/localtime", "/etc/timezone")
}

func localName(env, link, file string) (string, error) {
	var unknown error
	if env != "" {
		_, name, err := load(env)
		if err == nil {
			return name, nil
		}
		unknown = fmt.Errorf("environment variable TZ=%.100q: %w", env, err)
	}
	name := systemName(link, file)
	switch {
	case name == "" && unknown == nil:
		unknown = ErrLocalUnknown
	case unknown == nil:
		return name, nil
	}
	name = cmp.Or(name, "UTC")
	return name, fmt.Errorf("%w; using %s", unknown, name)
}

// systemName returns the name of the zone that a link or a file of the system has, or "".
func systemName(link, file string) string {
	if target, err := filepath.EvalSymlinks(link); err == nil && strings.Contains(filepath.ToSlash(target), "/zoneinfo/") {
		if _, name, err := load(filepath.ToSlash(target)); err == nil {
			return name
		}
	}
	if text, err := os.ReadFile(file); err == nil {
		if _, name, err := load(string(text)); err == nil {
			return name
		}
	}
	return ""
}
