package interop_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-mcp/parley/app/interop/script"
)

// patience bounds each pair. Nothing takes anywhere near as long, on a busy machine either; a peer that
// hangs ends here.
const patience = 5 * time.Minute

// The newest revision of each era, and the first of all.
const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
	first  = "2024-11-05"
)

// handshakes are all revisions of the handshake era.
var handshakes = []string{legacy, "2025-06-18", "2025-03-26", first}

// program is the command serve, built once for all tests.
var program string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "interop")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "serve")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/serve").CombinedOutput(); err != nil {
		panic("building cmd/serve: " + err.Error() + "\n" + string(out))
	}
	return m.Run()
}

// bounded is the test's context, which ends before the test has to.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// Ports that freeAddress takes: below those that systems give to connections, and to listeners
// that name none.
const (
	lowestPort = 20_000
	ports      = 12_000
)

// nextPort counts the ports from one that other processes hardly begin with, so that nothing gets
// a port twice.
var nextPort = func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(rand.Uint32N(ports))
	return n
}()

// freeAddress is an address on loopback at which nobody listens, for a program that is to listen
// there or for one that is to find nobody.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range ports {
		addr := fmt.Sprintf("127.0.0.1:%d", lowestPort+nextPort.Add(1)%ports)
		l, err := net.Listen("tcp", addr)
		if err == nil {
			_ = l.Close() // it was free
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// check compares what a client saw with what it must see.
func check(t *testing.T, got, want script.Report) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the report differs (-want +got):\n%s", diff)
	}
}

// want is what must come out, but for what a peer does differently: each such
// deviation has a line in README.md.
func want(version string, deviations ...func(*script.Report)) script.Report {
	r := script.Want(version)
	for _, deviate := range deviations {
		deviate(&r)
	}
	return r
}

// structured: the server gives structured content in every revision.
func structured(r *script.Report) { r.Sum = script.Want(modern).Sum }
