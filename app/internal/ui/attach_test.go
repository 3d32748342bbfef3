package ui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// pngFile begins as an image does.
const pngFile = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

func TestLineAttach(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{"a.txt": "alpha\n", "b.png": pngFile, "c.bin": "\xff\x00\x01", "d.txt": "", "with blank.txt": "beta"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	s := newSession(func(*session, host.Input) {})
	shown := talk(t, servers(), s, &ui.LineOptions{Width: func() int { return 1000 }}, "/attach", "/attach "+at("a.txt"), "/attach "+at("b.png"), "/attach "+at("c.bin"), "/attach "+at("d.txt"),
		"/attach "+dir, "/attach "+at("none\x1b[2J"), "look", "/attach", `/attach "`+at("with blank.txt")+`"`, "/attach -", "again")
	checkPlain(t, shown)
	for _, want := range []string{
		"No file is attached to your next message.", "Your next message has it: File a.txt 6 bytes.", "has it and 1 other: [image, image/png, 16 bytes].",
		"is neither an image nor a text in UTF-8", "is empty", "is no file", "no such file", "File with blank.txt 4 bytes", "Nothing is attached.",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("not shown: %s", want)
		}
	}
	if len(s.sent) != 2 || len(s.sent[0].Attached) != 2 || len(s.sent[1].Attached) != 0 {
		t.Fatalf("sent: %+v\n%s", s.sent, shown)
	}
	text, _ := s.sent[0].Attached[0].(*mcp.TextContent)
	image, _ := s.sent[0].Attached[1].(*mcp.ImageContent)
	if text == nil || text.Text != "File a.txt:\nalpha\n" || image == nil || image.MIMEType != "image/png" || string(image.Data) != pngFile {
		t.Errorf("attached: %+v", s.sent[0].Attached)
	}
}

// A file that is longer than its bound is not read to its end.
func TestFileTooLong(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "long")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 40); err != nil { // it takes no room
		t.Skip(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ui.File(path); err == nil || !strings.Contains(err.Error(), "has more than 20 MiB") {
		t.Errorf("%v", err)
	}
}
