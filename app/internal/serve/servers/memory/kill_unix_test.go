//go:build unix

package memory_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/serve/servers/memory"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport/mem"
)

// writerFile names the file to a process of this test that writes until it is killed.
const writerFile = "PARLEY_TEST_MEMORY_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerFile); path != "" {
		if err := write(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1) // it is killed before
	}
	os.Exit(m.Run())
}

// write creates one entity after the other, and prints the name of each when its call was answered.
func write(path string) error {
	s, err := memory.New("1.0.0", path, nil)
	if err != nil {
		return err
	}
	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(s, nil), nil)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		name := fmt.Sprintf("%d-%d", os.Getpid(), i)
		if _, err := c.CallTool(ctx, "create_entities", map[string]any{"entities": []memory.Entity{
			{Name: name, EntityType: "t", Observations: []string{strings.Repeat("x", 2000)}},
		}}, nil); err != nil {
			return err
		}
		fmt.Println(name)
	}
}

// A process that is killed at any moment leaves a file with every line whole, with all that it was told
// is remembered, and nothing else beside it. PARLEY_TEST_KILLS is how often it is killed; default 5.
func TestKilled(t *testing.T) {
	racetest.SkipSerial(t)
	kills := 5
	if n, err := strconv.Atoi(os.Getenv("PARLEY_TEST_KILLS")); err == nil {
		kills = n
	}
	path := filepath.Join(t.TempDir(), "memory.jsonl")
	r := rand.New(rand.NewPCG(1, 2))
	known := make(map[string]bool)
	for range kills {
		told := killed(t, path, 1+r.IntN(10))
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		there := make(map[string]bool)
		for line := range strings.Lines(string(file)) {
			var e memory.Entity
			if err := json.Unmarshal([]byte(line), &e); err != nil || len(e.Observations) != 1 || len(e.Observations[0]) != 2000 {
				t.Fatalf("a broken line: %.200q, %v", line, err)
			}
			there[e.Name] = true
		}
		for _, name := range told {
			known[name] = true
		}
		for name := range known {
			if !there[name] {
				t.Fatalf("%s was lost", name)
			}
		}
		if len(there) > 200 { // what is to be proved does not need a large file
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			clear(known)
		}
	}
	c := connect(t, path, nil)
	call(t, c, "create_entities", `{"entities":[{"name":"last","entityType":"t","observations":[]}]}`)
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 { // the file and its lock
		t.Errorf("%v, %v", left, err)
	}
}

// killed starts a process that writes, kills it once it has told of some entities and is in the
// middle of the next, and returns all that it has told.
func killed(t *testing.T, path string, after int) (told []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerFile+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if told = append(told, lines.Text()); len(told) == after {
			_ = cmd.Process.Kill() // what was written to the pipe before is read on
		}
	}
	if err := cmd.Wait(); err == nil || len(told) < after {
		t.Fatalf("the process ended by itself after %d entities: %v", len(told), err)
	}
	return told
}

// A pipe that comes in the place of the file is not opened: nobody may be at its other end.
func TestPipeForFile(t *testing.T) {
	path := fileOf(t, "")
	c := connect(t, path, nil)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"read_graph", "create_entities"} {
		if got := call(t, c, tool, map[string]string{"read_graph": `{}`, "create_entities": `{"entities":[]}`}[tool]); !strings.Contains(got, "is not a file any more") {
			t.Errorf("%s: %s", tool, got)
		}
	}
}
