package stdio

import (
	"os"
	"slices"
	"strings"
)

// inherited are the variables that a child gets when nothing else is said:
// where things are and how to speak, and no secrets.
var inherited = []string{
	"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
	// Windows
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE",
	"PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// inheritedPrefixes are the beginnings of further ones.
var inheritedPrefixes = []string{"LC_", "XDG_"}

// environ is the environment of the child.
func (d *CommandDialer) environ() []string {
	env := d.Env
	if env == nil {
		for _, e := range os.Environ() {
			if inherits(e) {
				env = append(env, e)
			}
		}
	}
	env = slices.Concat(env, d.ExtraEnv)
	if env == nil {
		env = []string{} // to os/exec nil is our own environment
	}
	return env
}

// inherits reports whether the variable may go to the child. A value that is a
// shell function is code, and does not.
func inherits(entry string) bool {
	name, value, _ := strings.Cut(entry, "=")
	if strings.HasPrefix(value, "()") {
		return false
	}
	name = strings.ToUpper(name)
	return slices.Contains(inherited, name) ||
		slices.ContainsFunc(inheritedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
