package server_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/stdio"
)

type rwc struct {
	io.Reader
	io.Writer
	c []io.Closer
}

func (r rwc) Close() error {
	for _, c := range r.c {
		c.Close()
	}
	return nil
}

func echoServer() *server.Server {
	s := server.New("bench", "1", &server.Options{Limits: server.Limits{ToolRate: server.Unlimited}})
	s.Add(server.Tool("echo", "Echoes.", func(ctx context.Context, in struct {
		Message string `json:"message"`
	}) (string, error) {
		return in.Message, nil
	}))
	return s
}

func BenchmarkZEcho(b *testing.B) {
	s := echoServer()
	inR, inW, _ := os.Pipe()
	outR, outW, _ := os.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		stdio.ServeConn(context.Background(), rwc{inR, outW, []io.Closer{inR, outW}}, s, nil)
	}()
	r := bufio.NewReaderSize(outR, 1<<16)
	io.WriteString(inW, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+"\n")
	r.ReadSlice('\n')
	for _, bc := range []struct{ name, line string }{
		{"legacy", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello hello hello hello hello hello hello hello"}}}` + "\n"},
		{"modern", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"name":"echo","arguments":{"message":"hello hello hello hello hello hello hello hello"}}}` + "\n"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			lines := make([][]byte, 64)
			for i := range lines {
				lines[i] = []byte(replaceID(bc.line, i))
			}
			sem := make(chan struct{}, 60)
			var ru0, ru1 syscall.Rusage
			syscall.Getrusage(0, &ru0)
			go func() {
				w := bufio.NewWriter(inW)
				for i := range b.N {
					select {
					case sem <- struct{}{}:
					default:
						w.Flush()
						sem <- struct{}{}
					}
					w.Write(lines[i%64])
				}
				w.Flush()
			}()
			for range b.N {
				line, err := r.ReadSlice('\n')
				if err != nil {
					b.Fatal(err)
				}
				if len(line) < 40 || line[len(line)-3] != '}' {
					b.Fatalf("%s", line)
				}
				<-sem
			}
			syscall.Getrusage(0, &ru1)
			cpu := float64(ru1.Utime.Nano()+ru1.Stime.Nano()-ru0.Utime.Nano()-ru0.Stime.Nano()) / 1e9
			b.ReportMetric(cpu/float64(b.N)*100000, "cpu-s/100k")
		})
	}
	inW.Close()
	<-done
}

func replaceID(line string, i int) string {
	return line[:len(`{"jsonrpc":"2.0","id":`)] + "1" + string(rune(48+i/10)) + string(rune('0'+i%10)) + line[len(`{"jsonrpc":"2.0","id":7`):]
}

func BenchmarkZMem(b *testing.B) {
	for _, v := range []string{"2025-11-25", "2026-07-28"} {
		b.Run(v, func(b *testing.B) {
			c, err := client.Connect(context.Background(), mem.New(echoServer(), nil), &client.Options{Versions: []string{v}})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Call[string](context.Background(), c, "echo", map[string]string{"message": "hello hello"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
