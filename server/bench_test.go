package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/stdio"
)

// pipelined is how many requests the benchmarks keep in flight.
const pipelined = 64

// An ends is a connection of two files.
type ends struct {
	r, w *os.File
}

func (e ends) Read(p []byte) (int, error)  { return e.r.Read(p) }
func (e ends) Write(p []byte) (int, error) { return e.w.Write(p) }
func (e ends) Close() error                { return errors.Join(e.r.Close(), e.w.Close()) }

func benchServer() *server.Server {
	return newServer(&server.Options{Limits: server.Limits{ToolRate: server.Unlimited, MaxInFlight: 2 * pipelined}}, echo())
}

// serveFiles serves a server on two pipes, with a handshake if version has one.
func serveFiles(b *testing.B, version string) (in *os.File, out *bufio.Reader) {
	b.Helper()
	serverIn, in, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	outFile, serverOut, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- stdio.ServeConn(context.Background(), ends{serverIn, serverOut}, benchServer(), nil) }()
	out = bufio.NewReaderSize(outFile, 4<<20)
	if version != v2607 {
		_, _ = fmt.Fprintf(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`+"\n", version)
		if _, err := out.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() {
		in.Close()
		if err := <-served; err != nil {
			b.Errorf("serving: %v", err)
		}
		outFile.Close()
	})
	return in, out
}

// benchLines are the requests in flight, ready made, with ids of two digits.
func benchLines(version, text string) [][]byte {
	l := &line{version: version, caps: emptyBody}
	lines := make([][]byte, pipelined)
	for i := range lines {
		lines[i] = []byte(l.request(fmt.Sprint(10+i), "tools/call", toolParams("echo", fmt.Sprintf(`{"text":%q}`, text))) + "\n")
	}
	return lines
}

// pump sends b.N requests, pipelined, and reads their answers.
func pump(b *testing.B, in io.Writer, out *bufio.Reader, lines [][]byte, flight int) {
	b.Helper()
	room := make(chan int, len(lines)) // ids that are free
	for i := range flight {
		room <- i
	}
	sent := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(in, 64<<10)
		for range b.N {
			var i int
			select {
			case i = <-room:
			default:
				if err := w.Flush(); err != nil {
					sent <- err
					return
				}
				i = <-room
			}
			if _, err := w.Write(lines[i]); err != nil {
				sent <- err
				return
			}
		}
		sent <- w.Flush()
	}()
	const head = `{"jsonrpc":"2.0","id":`
	for range b.N {
		text, err := out.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if len(text) < len(head)+12 || string(text[len(head)+2:len(head)+11]) != `,"result"` {
			b.Fatalf("%.200s", text)
		}
		room <- int(text[len(head)]-'0')*10 + int(text[len(head)+1]-'0') - 10
	}
	if err := <-sent; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkEcho1MiB is the same with an argument of one MiB, four in flight.
func BenchmarkEcho1MiB(b *testing.B) {
	for _, version := range bothEras {
		b.Run(version, func(b *testing.B) {
			in, out := serveFiles(b, version)
			lines := benchLines(version, strings.Repeat("x", 1<<20))
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			b.ResetTimer()
			pump(b, in, out, lines, 4)
		})
	}
}

// BenchmarkRoundTripMem is one call after the other, from the client's typed
// function to the tool and back, in memory.
func BenchmarkRoundTripMem(b *testing.B) {
	for _, version := range bothEras {
		b.Run(version, func(b *testing.B) {
			c, err := client.Connect(b.Context(), mem.New(benchServer(), nil), &client.Options{Versions: []string{version}})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			args := map[string]string{"text": "hello hello"}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Call[string](b.Context(), c, "echo", args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
