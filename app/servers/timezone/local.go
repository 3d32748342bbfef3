package timezone

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// ErrLocalUnknown says that the system does not tell the name of its time zone.
var ErrLocalUnknown = errors.New("the name of the local time zone cannot be found out; UTC is taken for it")

// LocalName finds out the name of the local time zone: by the environment variable TZ, or how the system is
// set up, which Windows tells nobody in names of the IANA database. If it cannot, it returns UTC and
// ErrLocalUnknown.
func LocalName() (string, error) {
	return localName(os.Getenv("TZ"), "/etc/localtime", "/etc/timezone")
}

func localName(env, link, file string) (string, error) {
	if name := strings.TrimPrefix(env, ":"); isZone(name) {
		return name, nil
	}
	if target, err := filepath.EvalSymlinks(link); err == nil {
		if _, name, found := strings.Cut(filepath.ToSlash(target), "/zoneinfo/"); found && isZone(name) {
			return name, nil
		}
	}
	if text, err := os.ReadFile(file); err == nil {
		if name := strings.TrimSpace(string(text)); isZone(name) {
			return name, nil
		}
	}
	return "UTC", ErrLocalUnknown
}

func isZone(name string) bool {
	_, err := load(name)
	return err == nil
}
