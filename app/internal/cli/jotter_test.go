package cli_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

type jotIn struct {
	Text string `json:"text" jsonschema:"what is written"`
}

// jotter is a server that writes a line into a file, its first argument, for each call that
// it carries out. A second argument, or what the file with the ending .edition has, is in
// the description of its tool note.
func jotter() {
	path, edition := os.Args[1], ""
	if len(os.Args) > 2 {
		edition = " " + os.Args[2]
	}
	if raw, err := os.ReadFile(path + ".edition"); err == nil {
		edition = " " + strings.TrimSpace(string(raw))
	}
	jot := func(format string, args ...any) error {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(f, format+"\n", args...); err != nil {
			return err
		}
		return f.Close()
	}
	ended := make(chan struct{}) // the first call of hang has
	s := server.New("jotter", "1", nil)
	s.Add(
		server.Tool("note", "Writes a text down."+edition, func(_ context.Context, in jotIn) (string, error) {
			return "noted: " + in.Text, jot("note %s", in.Text)
		}),
		server.Tool("inbox", "Gives the newest mail.", func(context.Context, mcp.None) (string, error) {
			return "Dear Ada", jot("inbox")
		}),
		server.Tool("secret", "Gives what is nobody's business.", func(context.Context, mcp.None) (string, error) {
			return "swordfish", jot("secret")
		}),
		server.Tool("post", "Posts a text to everybody.", func(_ context.Context, in jotIn) (string, error) {
			return "posted: " + in.Text, jot("post %s", in.Text)
		}),
		server.Tool("hang", "Takes for ever.", func(ctx context.Context, _ mcp.None) (string, error) {
			if err := jot("hang began"); err != nil {
				return "", err
			}
			if err := server.Progress(ctx, 1, 2, "hanging"); err != nil {
				return "", err
			}
			<-ctx.Done()
			close(ended)
			return "", jot("hang ended")
		}),
		server.Tool("await", "Waits for the end of a call of hang.", func(ctx context.Context, _ mcp.None) (string, error) {
			select {
			case <-ended:
				return "it has ended", nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}),
	)
	if err := stdio.Serve(context.Background(), s); err != nil {
		os.Exit(1)
	}
}
