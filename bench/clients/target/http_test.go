package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The target answers requests one after the other, whatever pieces they come in.
func TestServeConn(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":5,"method":"ping"}`
	const notice = `{"jsonrpc":"2.0","method":"notifications/x"}`
	requests := []string{
		"POST /mcp HTTP/1.1\r\nHost: x\r\ncontent-length: 40\r\n\r\n" + ping,
		"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 44\r\n\r\n" + notice,
		"GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n" + ping,
	}
	pong := `200 OK {"jsonrpc":"2.0","id":5,"result":{}}`
	want := []string{pong, "202 Accepted ", "405 Method Not Allowed ", pong}
	for _, piece := range []int{1, 7, 1000} {
		here, there := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- serveConn(there) }()
		go func() {
			for rest := strings.Join(requests, ""); rest != ""; {
				n := min(piece, len(rest))
				if _, err := io.WriteString(here, rest[:n]); err != nil {
					t.Error(err)
					return
				}
				rest = rest[n:]
			}
		}()
		var got []string
		r := bufio.NewReader(here)
		for range requests {
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, res.Status+" "+string(body))
		}
		here.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pieces of %d (-want +got):\n%s", piece, diff)
		}
	}
}

func TestServeConnRefuses(t *testing.T) {
	for _, request := range []string{
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nshort",
		"POST / HTTP/1.1\r\nContent-",
	} {
		here, there := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- serveConn(there) }()
		// What it does not want to read any more, it does not.
		_, _ = io.WriteString(here, request)
		here.Close()
		if err := <-served; err == nil {
			t.Errorf("%q is served", request)
		}
		there.Close()
	}
}

func TestServeLines(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/x"}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n"
	var out strings.Builder
	if err := serveLines(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	want := `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":2,"result":{}}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
