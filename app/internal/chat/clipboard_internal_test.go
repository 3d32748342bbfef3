package chat

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/mcp"
)

// imageBytes begin as an image does.
const imageBytes = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

// clipboardProgram makes a program that writes a text and ends with a code.
func clipboardProgram(t *testing.T, text, exit string) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "out"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "clip")
	if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\ncat '%s/out'\nexit %s\n", dir, exit), 0o700); err != nil { // it is a program
		t.Fatal(err)
	}
	return []string{script}
}

// The programs end by themselves, however long that takes on a busy machine.
func TestImageOf(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs of the test are scripts")
	}
	missing := imageProgram{[]string{"no-such-program-of-a-clipboard"}, asIs}
	for name, test := range map[string]struct {
		programs []imageProgram
		want     string // of the error, or empty
	}{
		"image":           {[]imageProgram{{clipboardProgram(t, imageBytes, "0"), asIs}}, ""},
		"the second one":  {[]imageProgram{missing, {clipboardProgram(t, imageBytes, "0"), asIs}}, ""},
		"AppleScript":     {[]imageProgram{{clipboardProgram(t, fmt.Sprintf("«data PNGf%X»\n", imageBytes), "0"), appleData}}, ""},
		"PowerShell":      {[]imageProgram{{clipboardProgram(t, base64.StdEncoding.EncodeToString([]byte(imageBytes))+"\r\n", "0"), base64Text}}, ""},
		"text":            {[]imageProgram{{clipboardProgram(t, "hello", "0"), asIs}}, "no image"},
		"nothing":         {[]imageProgram{{clipboardProgram(t, "", "0"), asIs}}, "no image"},
		"a failure":       {[]imageProgram{{clipboardProgram(t, imageBytes, "1"), asIs}}, "no image"},
		"bad AppleScript": {[]imageProgram{{clipboardProgram(t, "oops", "0"), appleData}}, "not an image"},
		"bad hexadecimal": {[]imageProgram{{clipboardProgram(t, "«data PNGfXX»", "0"), appleData}}, "invalid"},
		"bad base64":      {[]imageProgram{{clipboardProgram(t, "%%%", "0"), base64Text}}, "illegal"},
		"too long":        {[]imageProgram{{clipboardProgram(t, imageBytes+strings.Repeat("x", maxClipboard), "0"), asIs}}, "larger than 20 MiB"},
		"much too long":   {[]imageProgram{{clipboardProgram(t, imageBytes+strings.Repeat("x", 3*maxClipboard), "0"), asIs}}, "larger than 20 MiB"},
		"no program":      {[]imageProgram{missing}, "requires no-such-program-of-a-clipboard"},
		"no clipboard":    {nil, "cannot access a clipboard"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := imageOf(t.Context(), test.programs, time.Hour)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v", err)
				}
				return
			}
			if image, ok := c.(*mcp.ImageContent); err != nil || !ok || image.MIMEType != "image/png" || string(image.Data) != imageBytes {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}

// A program that does not end is stopped.
func TestImageOfHangs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program of the test is a script")
	}
	hangs := imageProgram{[]string{"sh", "-c", "exec sleep 1000"}, asIs}
	if _, err := imageOf(t.Context(), []imageProgram{hangs}, 50*time.Millisecond); err == nil || err.Error() != "sh did not end within 50ms" {
		t.Errorf("%v", err)
	}
}

// Each platform has the programs that it has, where there is a clipboard.
func TestImagePrograms(t *testing.T) {
	t.Parallel()
	env := func(set ...string) func(string) string {
		return func(name string) string {
			for _, s := range set {
				if s == name {
					return "x"
				}
			}
			return ""
		}
	}
	for _, test := range []struct {
		platform string
		getenv   func(string) string
		want     string
	}{
		{"linux", env(), ""},
		{"linux", env("DISPLAY"), "xclip"},
		{"linux", env("DISPLAY", "WAYLAND_DISPLAY"), "wl-paste xclip"},
		{"freebsd", env("DISPLAY"), "xclip"},
		{"darwin", env(), "pngpaste osascript"},
		{"windows", env(), "powershell"},
	} {
		var names []string
		for _, p := range imagePrograms(test.platform, test.getenv) {
			names = append(names, p.words[0])
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: %q, want %q", test.platform, got, test.want)
		}
	}
}
