package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A fakeDesktop is a machine with some programs on it, which notes what is
// started.
type fakeDesktop struct {
	env      map[string]string
	programs []string
	failing  []string
	started  [][]string
}

func (d *fakeDesktop) opener(goos string) *opener {
	return &opener{
		goos: goos,
		env:  func(name string) string { return d.env[name] },
		lookPath: func(name string) (string, error) {
			if !slices.Contains(d.programs, name) {
				return "", exec.ErrNotFound
			}
			return "/bin/" + filepath.Base(name), nil
		},
		start: func(_ context.Context, path string, args ...string) error {
			d.started = append(d.started, append([]string{path}, args...))
			if slices.Contains(d.failing, filepath.Base(path)) {
				return errors.New("exit status 3")
			}
			return nil
		},
	}
}

func mustParse(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestOpenerChoice(t *testing.T) {
	t.Parallel()
	const target = "https://as.example/authorize?state=x&scope=a+b"
	x11 := func(more ...string) map[string]string {
		env := map[string]string{"DISPLAY": ":0"}
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		return env
	}
	for _, tt := range []struct {
		name    string
		goos    string
		desktop fakeDesktop
		want    [][]string
		fails   bool
	}{
		{"linux", "linux", fakeDesktop{env: x11(), programs: []string{"xdg-open", "sh -c %s", "wslview"}}, [][]string{{"/bin/xdg-open", target}}, false},
		{"wayland", "freebsd", fakeDesktop{env: map[string]string{"WAYLAND_DISPLAY": "w"}, programs: []string{"x-www-browser"}}, [][]string{{"/bin/x-www-browser", target}}, false},
		{"wsl", "linux", fakeDesktop{env: map[string]string{"WSL_DISTRO_NAME": "d"}, programs: []string{"xdg-open", "sh -c %s", "wslview"}}, [][]string{{"/bin/wslview", target}}, false},
		{"BROWSER by name", "linux", fakeDesktop{env: x11("BROWSER", "firefox"), programs: []string{"firefox", "xdg-open"}}, [][]string{{"/bin/firefox", target}}, false},
		{"BROWSER without desktop", "linux", fakeDesktop{env: map[string]string{"BROWSER": "/opt/browser.sh"}, programs: []string{"/opt/browser.sh"}}, [][]string{{"/bin/browser.sh", target}}, false},
		{"BROWSER is not there", "linux", fakeDesktop{env: x11("BROWSER", "none"), programs: []string{"xdg-open"}}, [][]string{{"/bin/xdg-open", target}}, false},
		{"the next if one fails", "linux", fakeDesktop{env: x11(), programs: []string{"xdg-open", "sh -c %s", "sensible-browser"}, failing: []string{"xdg-open"}}, [][]string{{"/bin/xdg-open", target}, {"/bin/sensible-browser", target}}, false},
		{"all fail", "linux", fakeDesktop{env: x11(), programs: []string{"xdg-open"}, failing: []string{"xdg-open"}}, [][]string{{"/bin/xdg-open", target}}, true},
		{"no desktop", "linux", fakeDesktop{programs: []string{"xdg-open", "sh -c %s", "sensible-browser"}}, nil, true},
		{"darwin", "darwin", fakeDesktop{programs: []string{"/usr/bin/open"}}, [][]string{{"/bin/open", target}}, false},
		{"windows", "windows", fakeDesktop{programs: []string{"rundll32.exe"}}, [][]string{{"/bin/rundll32.exe", "url.dll,FileProtocolHandler", target}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.desktop.opener(tt.goos).open(t.Context(), mustParse(t, target))
			if (err != nil) != tt.fails {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, tt.desktop.started); diff != "" {
				t.Error(diff)
			}
			if tt.want == nil && !errors.Is(err, ErrNotFound) {
				t.Errorf("error %v, want ErrNotFound", err)
			}
		})
	}
}

// Attack: RCE by authorization URL (CVE-2025-6514). Proves: C28.
func TestAttackRCEByAuthorizationURL(t *testing.T) {
	t.Parallel()
	t.Run("URLs", func(t *testing.T) {
		t.Parallel()
		for _, raw := range []string{
			"javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "vbscript:x", "ms-msdt:/id", "shell:startup",
			"-e/bin/sh", "--version", "//as.example/x", "/bin/sh", "", "http://as.example/authorize",
			"https://user:pass@as.example/", "https:///authorize", "a:$(touch /tmp/x)", "\\\\host\\share",
		} {
			u, err := url.Parse(raw)
			if err != nil {
				continue
			}
			for _, goos := range []string{"linux", "darwin", "windows"} {
				d := everything()
				if err := d.opener(goos).open(t.Context(), u); err == nil || len(d.started) > 0 {
					t.Errorf("%s: %q was opened: %q", goos, raw, d.started)
				}
			}
			r := NewReceiver(&ReceiverOptions{Open: func(context.Context, *url.URL) error {
				t.Errorf("%q reached Open", raw)
				return nil
			}, Show: func(string) { t.Errorf("%q was shown", raw) }})
			v, err := r.Begin(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.Wait(t.Context(), u, nil); err == nil {
				t.Errorf("%q: no error", raw)
			}
			_ = v.Close()
		}
		if d := everything(); d.opener("linux").open(t.Context(), nil) == nil {
			t.Error("nil was opened")
		}
	})
	t.Run("arguments", func(t *testing.T) {
		t.Parallel()
		shells := []string{"sh", "sh -c %s", "bash", "cmd", "cmd.exe", "powershell.exe", "osascript", "start"}
		for _, query := range []string{"a=$(id)", "a=`id`", "a=1&calc.exe&", "a=%22;id;%22", "a='|id'", "a=%25PATH%25^&", "a=b c", "a=$%7BIFS%7D"} {
			for _, goos := range []string{"linux", "darwin", "windows"} {
				d := everything()
				u := &url.URL{Scheme: "https", Host: "as.example", Path: "/authorize", RawQuery: query}
				if err := d.opener(goos).open(t.Context(), u); err != nil {
					continue // refused is as good
				}
				if len(d.started) != 1 {
					t.Fatalf("%s: started %q", goos, d.started)
				}
				got := d.started[0]
				if slices.Contains(shells, filepath.Base(got[0])) {
					t.Errorf("%s: a shell: %q", goos, got)
				}
				last := got[len(got)-1]
				if !strings.HasPrefix(last, "https://as.example/authorize") || strings.ContainsAny(last, " \"'`<>|^\\") {
					t.Errorf("%s: argument %q", goos, last)
				}
				for _, arg := range got[1 : len(got)-1] {
					if arg != "url.dll,FileProtocolHandler" {
						t.Errorf("%s: argument %q", goos, arg)
					}
				}
			}
		}
	})
	t.Run("BROWSER", func(t *testing.T) {
		t.Parallel()
		for _, b := range []string{
			"sh -c", "firefox %s", "firefox:lynx", "-e", "a;b", "$(id)", "`id`", "./browser", "bin/browser", "a|b", "a&b", "~/b", "a\nb", strings.Repeat("b", 2000),
		} {
			if isProgram(b) {
				t.Errorf("%.40q is taken for one program", b)
			}
		}
	})
}

// everything is a machine with everything on it.
func everything() *fakeDesktop {
	return &fakeDesktop{
		env:      map[string]string{"DISPLAY": ":0", "BROWSER": "sh -c %s", "SystemRoot": `C:\Windows`},
		programs: []string{"xdg-open", "sh -c %s", "/usr/bin/open", `C:\Windows\System32\rundll32.exe`, "rundll32.exe", "sh", "cmd", "cmd.exe", "start"},
	}
}

// The real thing, with a program of ours in the place of the opener: it gets
// one argument, and no shell reads it.
func TestOpenStartsOneProgram(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the opener is found in PATH on Linux")
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$#\" \"$@\" > %s/out.new && mv %[1]s/out.new %[1]s/out\n", dir)
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("DISPLAY", ":0")
	t.Setenv("BROWSER", "")
	t.Setenv("WSL_DISTRO_NAME", "")
	u := mustParse(t, "https://as.example/authorize?a=$(touch+"+dir+"/pwned)&b=%60id%60;c=$HOME")
	if err := Open(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := checkURL(u)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("1\n"+want.String()+"\n", string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestStartProgram(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"true", "false", "sleep"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	look := func(name string) string { p, _ := exec.LookPath(name); return p }
	if err := startProgram(t.Context(), look("true")); err != nil {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) { // the time to fail stands still while the program runs
		if err := startProgram(t.Context(), look("false")); err == nil {
			t.Error("a program that fails at once is no error")
		}
	})
	if err := startProgram(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a program that is not there is no error")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := startProgram(ctx, look("sleep"), "60"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if err := startProgram(ctx, look("true")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("started although the context had ended: %v", err)
	}
}
