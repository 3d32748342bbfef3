package driver

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReader(t *testing.T) {
	const sized = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
	const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nmcp-session-id: s1\r\n\r\n5\r\nhello\r\n1;x=y\r\n \r\nA\r\nbeautiful \r\n0\r\n\r\n"
	for name, test := range map[string]struct {
		sent    string
		status  int
		body    string
		session string
	}{
		"a length":           {sized, 200, "hello", ""},
		"chunks":             {chunked, 200, "hello beautiful ", "s1"},
		"an empty body":      {"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 202, "", ""},
		"no content":         {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", ""},
		"no chunk but one":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, "", ""},
		"another's spelling": {"HTTP/1.1 404 Not Found\r\ncontent-length:5\r\nMCP-SESSION-ID:  x \r\n\r\nhello", 404, "hello", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"at once":      strings.NewReader(test.sent + sized),
				"byte by byte": iotest.OneByteReader(strings.NewReader(test.sent + sized)),
			} {
				reader := newReader(r)
				got, err := reader.next(false)
				if err != nil || got.status != test.status || string(got.body) != test.body || got.session != test.session {
					t.Errorf("%s: %d %q %q, %v", how, got.status, got.body, got.session, err)
				}
				next, err := reader.next(false)
				if err != nil || string(next.body) != "hello" {
					t.Errorf("%s: the next: %q, %v", how, next.body, err)
				}
			}
		})
	}
}

func TestReaderRefuses(t *testing.T) {
	for name, sent := range map[string]string{
		"nothing":             "",
		"another protocol":    "SSH-2.0\r\n",
		"no status":           "HTTP/1.1 abc\r\n\r\n",
		"no length":           "HTTP/1.1 200 OK\r\n\r\nhello",
		"a wrong length":      "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"a negative length":   "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
		"a short body":        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
		"a huge body":         "HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n",
		"a wrong chunk":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"a chunk too long":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
		"chunks without end":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
		"an unfinished field": "HTTP/1.1 200 OK\r\nContent-Len",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := newReader(strings.NewReader(sent)).next(false); err == nil {
				t.Errorf("taken: %+v", got)
			}
		})
	}
}

func TestReaderOpenStream(t *testing.T) {
	got, err := newReader(strings.NewReader("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")).next(true)
	if err != nil || got.status != 200 {
		t.Errorf("%+v, %v", got, err)
	}
}
