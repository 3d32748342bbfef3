package examples_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A program is one that runs until it is ended.
type program struct {
	lines *bufio.Scanner
	stop  func()
}

// launch starts the commands of a block.
func launch(t *testing.T, command, bin string) *program {
	t.Helper()
	cmd := exec.Command("bash", "-c", "exec "+command)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir())
	notes, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{lines: bufio.NewScanner(notes)}
	p.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		rest, _ := io.ReadAll(notes)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, rest)
		}
	})
	t.Cleanup(p.stop)
	return p
}

// address waits for a line of notes that has an address behind some words.
func (p *program) address(t *testing.T, words string) string {
	t.Helper()
	found := regexp.MustCompile(words + ` (http://[^ ;]*)`)
	for p.lines.Scan() {
		if m := found.FindStringSubmatch(p.lines.Text()); m != nil {
			return m[1]
		}
	}
	t.Fatalf("no address behind %q", words)
	return ""
}

func buildParley(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin+string(filepath.Separator), "./app/cmd/parley")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// The command that the page of observability shows serves metrics, and sends
// traces to a collector.
func TestServeObserved(t *testing.T) {
	var command, want string
	page := pages(t)[guide+"/observability.md"]
	for _, b := range blocks("observability.md", page) {
		if b.language == "sh" && strings.HasPrefix(b.text, "parley serve") {
			command = b.text
		}
		if b.directive == "metrics of parley serve" {
			want = b.text
		}
	}
	if command == "" || want == "" {
		t.Fatal("the page has no command, or no metrics")
	}
	var mu sync.Mutex
	var traces strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&traces, r.Body)
	}))
	defer collector.Close()
	p := launch(t, strings.NewReplacer("127.0.0.1:8080", "127.0.0.1:0", "127.0.0.1:9090", "127.0.0.1:0",
		"http://localhost:4318", collector.URL).Replace(command), buildParley(t))
	metrics := p.address(t, "metrics at")
	url := p.address(t, "serving \"everything\" at")

	ctx, cancel := context.WithTimeout(t.Context(), commandTime)
	defer cancel()
	c, err := client.Connect(ctx, streamable.URL(url), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := client.Call[string](ctx, c, "echo", map[string]string{"message": "hi"}); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, metrics, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), want) {
		t.Errorf("the page says %s, and there is\n%s", want, text)
	}
	p.stop()
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(traces.String(), "tools/call echo") {
		t.Errorf("the collector has %s", traces.String())
	}
}
