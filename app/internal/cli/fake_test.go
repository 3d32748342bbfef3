package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// fake is a server that a script drives, as a program; its argument is the file of the script.
//
//	server NAME REVISION…     its name, and its revisions; without this line "fake", and all of them
//	quiet                     its own log goes nowhere
//	start                     what it does before it serves
//	tool NAME DESCRIPTION     a tool, and what a call of it does
//	resource URI              a resource, and what reading it does
//	answer METHOD             what it does in place of its answer to a method; without a line, nothing
//
// What it does stands below, one line each, indented by a tab. {text} is the argument of a tool, which
// has none if {text} is not in its lines; {id} and {answer} are the id of a request and the line that
// answers it, {n} is the number of a repetition, {pid} that of the process, and {10 MiB} is so many
// letters. What begins with a quotation mark is a string of Go. A line that begins with # is a comment.
//
//	say TEXT                  the result of a call
//	fail TEXT                 an error that is not for callers
//	panic TEXT
//	picture                   the result is a white picture, too
//	describe NAME DESCRIPTION changes a tool, and waits until the tools were listed again
//	append FILE TEXT          adds a line to a file
//	join FOLDER               is counted by the census of a folder
//	deaf                      reads without answering until the input ends, and exits
//	stderr TEXT               a line on standard error
//	write TEXT                bytes on standard output
//	line TEXT                 the same, with the end of a line
//	result JSON               an answer with this result
//	next JSON                 the same, where {n} is how many there were
//	more TEXT                 the answer, with a member that has this text
//	ask METHOD PARAMS         sends a request, and waits for a response
//	exit CODE
//	repeat COUNT …            does one of these so often
func fake() {
	script, err := os.ReadFile(os.Args[1])
	f := &fakeServer{
		name: "fake", tools: make(map[string][]string), answers: make(map[string][]string),
		requests: make(map[string]string), responses: make(chan struct{}), listed: make(chan struct{}),
	}
	if err == nil {
		err = f.read(string(script))
	}
	if err == nil {
		err = f.serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fakeScript writes the script of a fake server, and returns the command that starts it.
func fakeScript(t *testing.T, lines ...string) (command string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	write(t, file, strings.Join(lines, "\n"))
	return "fake " + file
}

// A fakeServer is what a script says. It stands between the client and a server of the library.
type fakeServer struct {
	name     string
	options  server.Options
	server   *server.Server
	start    []string
	features []server.Feature
	tools    map[string][]string // what calls do, by name
	answers  map[string][]string // what it does in place of answers, by method

	io.ReadWriteCloser // the client
	in                 *bufio.Reader
	unread             []byte
	working            sync.WaitGroup
	responses          chan struct{} // one for each answer to what ask asked
	pages              atomic.Int64

	mu       sync.Mutex
	requests map[string]string // the methods of requests of the client, by id
	listed   chan struct{}     // closed at the next list of tools
}

// read reads a script.
func (f *fakeServer) read(script string) error {
	head, does := "", []string(nil)
	for line := range strings.Lines(script + "\nend") {
		line = strings.TrimRight(line, "\n")
		if action, ok := strings.CutPrefix(line, "\t"); ok {
			does = append(does, action)
			continue
		}
		word, rest, _ := strings.Cut(head, " ")
		name, more, _ := strings.Cut(rest, " ")
		switch word {
		case "", "#":
		case "server":
			f.name, f.options.Versions = name, strings.Fields(more)
		case "quiet":
			f.options.Logger = slog.New(slog.DiscardHandler)
		case "start":
			f.start = does
		case "answer":
			f.answers[rest] = does
		case "tool":
			f.tools[name] = does
			f.features = append(f.features, f.tool(name, more))
		case "resource":
			does := does
			f.features = append(f.features, server.Resource(rest, rest, func(ctx context.Context) (string, error) {
				a := &fakeAction{fakeServer: f, ctx: ctx}
				err := a.all(does)
				return a.text, err
			}))
		default:
			return fmt.Errorf("the script has an unknown line %q", head)
		}
		head, does = line, nil
	}
	return nil
}

// tool is a tool of the script.
func (f *fakeServer) tool(name, description string) server.Feature {
	does := f.tools[name]
	call := func(ctx context.Context, in jotIn) ([]mcp.Content, error) {
		a := &fakeAction{fakeServer: f, ctx: ctx, words: []string{"{text}", in.Text}}
		err := a.all(does)
		return append([]mcp.Content{mcp.Text(a.text)}, a.more...), err
	}
	if strings.Contains(strings.Join(does, "\n"), "{text}") {
		return server.Tool(name, description, call)
	}
	return server.Tool(name, description, func(ctx context.Context, _ mcp.None) ([]mcp.Content, error) { return call(ctx, jotIn{}) })
}

// serve carries out the script.
func (f *fakeServer) serve() (err error) {
	if f.ReadWriteCloser, err = stdio.Standard(); err != nil {
		return err
	}
	f.in = bufio.NewReader(f.ReadWriteCloser)
	if err := (&fakeAction{fakeServer: f}).all(f.start); err != nil {
		return err
	}
	f.server = server.New(f.name, "1", &f.options)
	f.server.Use(f.tellLists)
	f.server.Add(f.features...)
	err = stdio.ServeConn(context.Background(), f, f.server, nil)
	f.working.Wait()
	return err
}

// tellLists is middleware that tells of lists of tools.
func (f *fakeServer) tellLists(next server.Func) server.Func {
	return func(c *server.Call) (server.Result, error) {
		r, err := next(c)
		if c.Method() == mcp.MethodToolsList {
			f.mu.Lock()
			defer f.mu.Unlock()
			close(f.listed)
			f.listed = make(chan struct{})
		}
		return r, err
	}
}

// Read implements [io.Reader] for the server. Responses are for ask.
func (f *fakeServer) Read(p []byte) (int, error) {
	for len(f.unread) == 0 {
		line, err := f.in.ReadBytes('\n')
		if err != nil {
			close(f.responses)
			return 0, err
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(line, &m) == nil && m.Method == "" {
			f.responses <- struct{}{}
			continue
		}
		f.mu.Lock()
		f.requests[string(m.ID)] = m.Method
		f.mu.Unlock()
		f.unread = line
	}
	n := copy(p, f.unread)
	f.unread = f.unread[n:]
	return n, nil
}

// Write implements [io.Writer] for the server.
func (f *fakeServer) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.Unmarshal([]byte(line), &m) // what is none has no method of the script
		f.mu.Lock()
		does, ok := f.answers[f.requests[string(m.ID)]]
		f.mu.Unlock()
		if !ok || m.Method != "" {
			if _, err := io.WriteString(f.ReadWriteCloser, line); err != nil {
				return 0, err
			}
			continue
		}
		a := &fakeAction{fakeServer: f, words: []string{"{id}", string(m.ID), "{answer}", strings.TrimSpace(line)}}
		f.working.Go(func() { _ = a.all(does) }) // nobody hears what fails here
	}
	return len(p), nil
}

// A fakeAction is what a fake server does at one moment.
type fakeAction struct {
	*fakeServer
	ctx   context.Context //nolint:containedctx // of the one call
	words []string        // and what they stand for
	text  string          // the result
	more  []mcp.Content
}

// all carries out lines.
func (a *fakeAction) all(lines []string) error {
	for _, line := range lines {
		if err := a.one(line); err != nil {
			return err
		}
	}
	return nil
}

// one carries out a line.
func (a *fakeAction) one(line string) (err error) {
	verb, rest, _ := strings.Cut(line, " ")
	if strings.HasPrefix(rest, `"`) {
		if rest, err = strconv.Unquote(rest); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	if verb == "repeat" {
		times, rest, _ := strings.Cut(rest, " ")
		count, err := strconv.Atoi(times)
		for n := 0; n < count && err == nil; n++ {
			err = a.one(strings.ReplaceAll(rest, "{n}", strconv.Itoa(n)))
		}
		return err
	}
	text := strings.NewReplacer(append(a.words, "{pid}", strconv.Itoa(os.Getpid()))...).Replace(rest)
	if strings.Contains(text, "{10 MiB}") {
		text = strings.ReplaceAll(text, "{10 MiB}", strings.Repeat("x", 10<<20))
	}
	first, other, _ := strings.Cut(text, " ")
	switch verb {
	case "say":
		a.text = text
	case "fail":
		return errors.New(text)
	case "panic":
		panic(text)
	case "picture":
		a.more = append(a.more, mcp.Image(picture(color.White), "image/png"))
	case "describe":
		return a.describe(first, other)
	case "append":
		file, err := os.OpenFile(first, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(file, other)
		return errors.Join(err, file.Close())
	case "stderr":
		_, err = fmt.Fprintln(os.Stderr, text)
	case "exit":
		code, _ := strconv.Atoi(text)
		os.Exit(code)
	default:
		return a.onStream(verb, text)
	}
	return err
}

// onStream does what has to do with streams and processes.
func (a *fakeAction) onStream(verb, text string) error {
	switch verb {
	case "write":
	case "line":
		text += "\n"
	case "next":
		text = strings.ReplaceAll(text, "{n}", strconv.FormatInt(a.pages.Add(1), 10))
		fallthrough
	case "result":
		text = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", a.words[1], text)
	case "more":
		text = strings.Replace(a.words[3], `"result":{`, `"result":{"more":"`+text+`",`, 1) + "\n"
	case "ask":
		method, params, _ := strings.Cut(text, " ")
		_, err := fmt.Fprintf(a, `{"jsonrpc":"2.0","id":"asked","method":%q,"params":%s}`+"\n", method, params)
		if _, ok := <-a.responses; !ok {
			return io.EOF
		}
		return err
	case "join":
		return joinCensus(text)
	case "deaf":
		_, _ = io.Copy(io.Discard, a.in)
		os.Exit(0)
	default:
		return fmt.Errorf("the script has an unknown action %q", verb)
	}
	_, err := io.WriteString(a.ReadWriteCloser, text)
	return err
}

// describe changes a tool, and waits until the tools were listed again.
func (a *fakeAction) describe(name, description string) error {
	a.mu.Lock()
	listed := a.listed
	a.mu.Unlock()
	a.server.Add(a.tool(name, description))
	select {
	case <-listed:
		return nil
	case <-a.ctx.Done():
		return context.Cause(a.ctx)
	}
}
