package cli_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/safefile"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// wordsFile is what decides what the server of these tests offers.
const wordsFile = "words.txt"

// aloneWord has the server take a lock, so that no other process of it can start.
const aloneWord = "alone"

// workbench is a server that is worked on, as a program: its tools are the words of a file. Its
// arguments are the folder and its revision.
func workbench() {
	dir := os.Args[1]
	if err := joinCensus(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	text, err := os.ReadFile(filepath.Join(dir, "src", wordsFile))
	words := strings.Fields(string(text))
	if err != nil || slices.Contains(words, "broken") {
		fmt.Fprintln(os.Stderr, "words.txt:1: it is broken")
		os.Exit(1)
	}
	if slices.Contains(words, aloneWord) {
		lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
		taken := false
		if err == nil {
			taken, err = safefile.TryLock(lock)
		}
		if !taken {
			fmt.Fprintln(os.Stderr, "the lock is taken:", err)
			os.Exit(1)
		}
		defer runtime.KeepAlive(lock) // until the process ends
	}
	s := server.New("workbench", "1.0.0", &server.Options{Versions: os.Args[2:]})
	for _, word := range words {
		s.Add(server.Tool(word, "Says a word.", func(context.Context, mcp.None) (string, error) { return word, nil }))
	}
	s.Add(server.Tool("slow", "Waits, and says all words.", func(context.Context, mcp.None) (string, error) {
		gate, err := net.Dial("unix", filepath.Join(dir, gateFile))
		if err != nil {
			return "", err
		}
		_, err = io.Copy(io.Discard, gate)
		return strings.Join(words, " "), err
	}))
	if err := stdio.Serve(context.Background(), s); err != nil {
		os.Exit(1)
	}
}
