package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// versions are the revisions that flows are tried in: the stateless one, the newest with a
// handshake, and the first.
var versions = []string{stateless, "2025-11-25", "2024-11-05"}

const stateless = "2026-07-28"

// An actor is a server with something for each flow of the protocol.
type actor struct {
	dir   string // where it writes, and reads page.txt: an address to visit
	ended chan struct{}

	mu     sync.Mutex
	note   string
	lists  int           // of tools
	listed chan struct{} // closed at the next list
}

// Files in the folder of an actor.
const (
	censusFile = "census" // a socket: it connects to it for as long as it lives
	pidFile    = "pid"    // its process
	gateFile   = "gate"   // a socket: a held one serves when its connection to it ends
	listedFile = "listed" // its tools were asked for
)

// censusConn is the connection to the census. It is held here, since one that nothing holds is closed
// before its process ends.
var censusConn net.Conn

// joinCensus has this process counted in a folder, if there is a census.
func joinCensus(dir string) (err error) {
	censusConn, err = net.Dial("unix", filepath.Join(dir, censusFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// actorMain is the actor as a program. Its first argument is the folder; with a second one, held, it serves
// when its connection to the gate has ended.
func actorMain() {
	dir := os.Args[1]
	if err := joinCensus(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if slices.Contains(os.Args[2:], "held") {
		gate, err := net.Dial("unix", filepath.Join(dir, gateFile))
		if err != nil {
			os.Exit(2)
		}
		_, _ = io.Copy(io.Discard, gate)
	}
	if err := os.WriteFile(filepath.Join(dir, pidFile), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		os.Exit(2)
	}
	s := newActor(dir)
	s.Use(noteLists(dir))
	if err := stdio.Serve(context.Background(), s); err != nil {
		os.Exit(1)
	}
}

// noteLists is middleware that leaves a file when tools were asked for.
func noteLists(dir string) server.Middleware {
	return func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Method() == mcp.MethodToolsList {
				if err := os.WriteFile(filepath.Join(dir, listedFile), nil, 0o600); err != nil {
					return nil, err
				}
			}
			return next(c)
		}
	}
}

// newActor makes the server.
func newActor(dir string) *server.Server {
	a := &actor{dir: dir, ended: make(chan struct{}), note: "first", listed: make(chan struct{})}
	s := server.New("actor", "1.2.3", &server.Options{Logger: slog.New(slog.DiscardHandler)})
	s.Use(a.countLists)
	s.Add(
		server.Tool("who", "Tells who calls.", who),
		server.Tool("note", "Takes a note.", a.take),
		server.Tool("form", "Asks a form.", form),
		server.Tool("page", "Asks for a visit to a page.", a.page),
		server.Tool("consult", "Asks the model.", consult),
		server.Tool("where", "Asks for directories.", where),
		server.Tool("steps", "Reports progress.", steps),
		server.Tool("hang", "Takes for ever.", a.hang),
		server.Tool("await", "Waits for the end of hang.", a.await),
		server.Tool("chatter", "Logs at all levels.", chatter),
		server.Tool("flood", "Reports and logs 200 times a second, for ever.", flood),
		server.Tool("probe", "Pings the client.", probe),
		server.Tool("relisted", "Waits until its tools were listed again.", a.relisted),
		server.Tool("grow", "Gets a new tool.", func(context.Context, mcp.None) (string, error) {
			s.Add(server.Tool("blossom", "Is new.", func(context.Context, mcp.None) (string, error) { return "in bloom", nil }))
			return "there is more now", nil
		}),
		server.Resource("memo://now", "now", func(context.Context) (string, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			return "the note is " + a.note, nil
		}),
		server.Template("memo://old/{year}", "old", func(_ context.Context, in struct {
			Year int `uri:"year"`
		},
		) (string, error) {
			return fmt.Sprintf("what was noted in %d", in.Year), nil
		}),
		server.Prompt("poem", "Asks for a poem.", func(_ context.Context, in struct {
			Topic string `json:"topic"`
		},
		) (string, error) {
			return "Who wrote of the " + in.Topic + "?", nil
		}).With(server.PromptOptions{Complete: map[string]server.Completer{"topic": server.Choices("moon", "sea", "sun")}}),
	)
	return s
}

// countLists is middleware that counts the lists of tools that were asked for to their end.
func (a *actor) countLists(next server.Func) server.Func {
	return func(c *server.Call) (server.Result, error) {
		r, err := next(c)
		if c.Method() == mcp.MethodToolsList {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.lists++
			close(a.listed)
			a.listed = make(chan struct{})
		}
		return r, err
	}
}

// relisted waits for the second list.
func (a *actor) relisted(ctx context.Context, _ mcp.None) (string, error) {
	for {
		a.mu.Lock()
		lists, listed := a.lists, a.listed
		a.mu.Unlock()
		if lists > 1 {
			return "listed again", nil
		}
		select {
		case <-listed:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func who(ctx context.Context, _ mcp.None) (string, error) {
	c := server.CallFrom(ctx)
	return fmt.Sprintf("%s speaks %s", c.ClientInfo().Name, c.Version()), nil
}

func (a *actor) take(_ context.Context, in jotIn) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note = in.Text
	return "noted: " + in.Text, nil
}

func form(ctx context.Context, _ mcp.None) (string, error) {
	answer, err := server.Elicit[struct {
		Name string `json:"name" minlen:"2"`
		Age  int    `json:"age,omitzero" min:"0" max:"150"`
	}](ctx, "Who are you?")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %s is %d", answer.Action, answer.Value.Name, answer.Value.Age), nil
}

func (a *actor) page(ctx context.Context, _ mcp.None) (string, error) {
	raw, err := os.ReadFile(filepath.Join(a.dir, "page.txt"))
	if err != nil {
		return "", err
	}
	agreed, err := server.ElicitURL(ctx, string(raw), "Please visit.", func(context.Context) (bool, error) { return true, nil })
	return fmt.Sprint("agreed: ", agreed), err
}

func consult(ctx context.Context, _ mcp.None) (string, error) {
	r, err := server.Sample(ctx, &mcp.CreateMessageParams{
		MaxTokens: 50, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("What is new?")}}},
	})
	if err != nil {
		return "", err
	}
	return "it answered: " + host.ContentText(r.Content[0]), nil
}

func where(ctx context.Context, _ mcp.None) (string, error) {
	list, err := server.Roots(ctx)
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = filepath.Base(r.URI)
	}
	return "directories: " + strings.Join(names, " "), err
}

// steps reports each step of three, and thousands between the last two.
func steps(ctx context.Context, _ mcp.None) (string, error) {
	for n := range 5000 {
		if err := server.Progress(ctx, float64(n+1), 5000, "step\x1b[2J"); err != nil {
			return "", err
		}
	}
	return "all steps done", nil
}

func (a *actor) hang(ctx context.Context, _ mcp.None) (string, error) {
	if err := server.Progress(ctx, 1, 2, "hanging"); err != nil {
		return "", err
	}
	<-ctx.Done()
	close(a.ended)
	return "too late", nil
}

func (a *actor) await(ctx context.Context, _ mcp.None) (string, error) {
	select {
	case <-a.ended:
		return "it has ended", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func chatter(ctx context.Context, _ mcp.None) (string, error) {
	for _, level := range mcp.LogLevels() {
		if err := server.Log(ctx, level, "diary\x1b[2J", "\u202e\x1b]0;"+string(level)+"\x07"); err != nil {
			return "", err
		}
	}
	return "it was said", nil
}

func flood(ctx context.Context, _ mcp.None) (string, error) {
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	for n := 0; ; n++ {
		err := errors.Join(server.Progress(ctx, float64(n+1), 0, "flooding"), server.Log(ctx, mcp.LogInfo, "flood", fmt.Sprint("message ", n)))
		if err != nil {
			return "", err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func probe(ctx context.Context, _ mcp.None) (string, error) {
	if err := server.CallFrom(ctx).Ping(ctx); err != nil {
		return "", errors.Join(errors.New("no answer"), err)
	}
	return "the client is there", nil
}
