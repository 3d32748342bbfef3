package cli_test

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// A response of a server that breaks off is no line of a log on standard error, and what is no path is not
// passed on.
func TestRecordHTTPBroken(t *testing.T) { // it looks at the log of the process
	var logged bytes.Buffer
	before := log.Writer()
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(before) })
	asked := make(chan string, 8)
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.RequestURI
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Length", "100000")
		if _, err := io.WriteString(w, "data: {}\n\n"); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(behind.Close)
	var said output
	at, stop := start(t, `at http://([^/]+)/mcp;`, &said, "record", "--out", filepath.Join(t.TempDir(), "c"), "--http", "127.0.0.1:0", behind.URL+"/mcp")
	for _, target := range []string{"/mcp", "http:example.com/mcp"} {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET "+target+" HTTP/1.1\r\nHost: "+at+"\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(answer), "data: {}") {
			t.Errorf("%s: %v\n%s", target, err, answer)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		select {
		case got := <-asked:
			if !strings.HasPrefix(got, "/") {
				t.Errorf("the server was asked for %q", got)
			}
		default: // it would have been by now
			t.Errorf("%s: the server was not asked", target)
		}
	}
	stop()
	if all := said.String() + logged.String(); strings.Contains(all, "ReverseProxy") {
		t.Errorf("said %s", all)
	}
}
