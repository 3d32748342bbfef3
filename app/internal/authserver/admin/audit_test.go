package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/audit"
	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/safefile"
)

const adminKey = "0123456789abcdef"

// audited makes an audit file with so many lines.
func audited(t *testing.T, lines int, key []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.log")
	log := audit.New(path, &audit.Options{Key: key})
	entries := make([]any, lines)
	for i := range entries {
		entries[i] = map[string]any{"time": time.Now().UTC(), "event": "login", "userName": fmt.Sprintf("user%d", i)}
	}
	if err := log.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	return path
}

// reader serves the administration of an audit, and returns a client. If the server is late, its time for
// the answer is over when the handler begins.
func reader(t *testing.T, o *admin.Options, late bool) *admin.Client {
	t.Helper()
	h := admin.NewHandler(admin.New(nil, o), &admin.HandlerOptions{Key: adminKey})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if late {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
				t.Error(err)
			}
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	client, err := admin.NewClient(s.Listener.Addr().String(), adminKey)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// An export gives the lines as they are, however long it takes. Proves: the time of the server for an
// answer does not end it.
func TestAuditExport(t *testing.T) {
	t.Parallel()
	path := audited(t, 100_000, nil) // more than connections buffer
	client := reader(t, &admin.Options{AuditFile: path}, true)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	export := func(parameters string) (string, *admin.AuditRead) {
		t.Helper()
		var got strings.Builder
		result, err := client.Stream(t.Context(), admin.Find("audit export"), []byte(parameters), func(line []byte) error {
			got.Write(line)
			return got.WriteByte('\n')
		})
		if err != nil {
			t.Fatal(err)
		}
		return got.String(), result.(*admin.AuditRead)
	}
	if got, read := export(`{}`); got != string(want) || read.Text() != "" {
		t.Errorf("%d bytes, want %d; %s", len(got), len(want), read.Text())
	}
	if got, _ := export(`{"user":"user7","limit":2}`); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"user7"`) {
		t.Errorf("one user: %s", got)
	}
	if got, _ := export(`{"user":"eve"}`); got != "" {
		t.Errorf("nobody: %s", got)
	}
	result, err := client.Run(t.Context(), admin.Find("audit query"), []byte(`{"event":"login"}`))
	if err != nil {
		t.Fatal(err)
	}
	lines := result.(*admin.AuditLines).Lines
	if len(lines) != 100 || !strings.HasSuffix(string(want), string(lines[99])+"\n") {
		t.Errorf("a query without a limit has %d lines", len(lines))
	}
	if err := os.WriteFile(path, append([]byte("no JSON\n"), `{"seq":1,"ev`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, read := export(`{}`); got != "" || read.Unreadable != 1 || !read.Incomplete {
		t.Errorf("damaged: %q, %+v", got, read)
	}
}

// An export that cannot go on is cut off, and its client sees that.
func TestAuditExportCutOff(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2<<20) + "\n"
	for lines, says := range map[int]string{3: "run 'parley auth audit verify'", 10_000: "response ended before"} {
		path := audited(t, lines, nil)
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(long)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		client := reader(t, &admin.Options{AuditFile: path}, false)
		got := 0
		_, err = client.Stream(t.Context(), admin.Find("audit export"), []byte(`{}`), func([]byte) error { got++; return nil })
		if err == nil || !strings.Contains(err.Error(), says) || errors.Is(err, io.ErrUnexpectedEOF) != (got > 0) {
			t.Errorf("%d of %d lines, then %v", got, lines, err)
		}
		stop := errors.New("stop")
		if lines > 3 {
			_, err = client.Stream(t.Context(), admin.Find("audit export"), []byte(`{}`), func([]byte) error { return stop })
			if !errors.Is(err, stop) {
				t.Errorf("an error of visit: %v", err)
			}
		}
	}
}

// A check that takes longer than the server's times is answered.
func TestAuditVerifySlow(t *testing.T) {
	t.Parallel()
	path := audited(t, 3, nil)
	unlock, err := safefile.Lock(t.Context(), path+".lock") // which the check waits for, for 2 s
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	client := reader(t, &admin.Options{AuditFile: path}, true)
	result, err := client.Run(t.Context(), admin.Find("audit verify"), []byte(`{}`))
	if err != nil || result.(*admin.AuditChain).Lines != 3 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestAuditVerify(t *testing.T) {
	t.Parallel()
	key := []byte("a key of the lines")
	path := audited(t, 3, key)
	verify := func(o *admin.Options, parameters string) *admin.AuditChain {
		t.Helper()
		result, err := reader(t, o, false).Run(t.Context(), admin.Find("audit verify"), []byte(parameters))
		if err != nil {
			t.Fatal(err)
		}
		return result.(*admin.AuditChain)
	}
	keyed := &admin.Options{AuditFile: path, AuditKey: key}
	good := verify(keyed, `{}`)
	if good.Wrong != "" || good.Lines != 3 || good.Authenticated != 1 || good.Hash == "" {
		t.Errorf("%+v", good)
	}
	raw, err := json.Marshal(good)
	if err != nil || strings.Contains(string(raw), string(key)) {
		t.Errorf("%s, %v", raw, err)
	}
	if got := verify(keyed, `{"expect":"`+good.Hash+`"}`); got.Wrong != "" {
		t.Errorf("with the hash that is there: %s", got.Wrong)
	}
	if got := verify(keyed, `{"expect":"00"}`); !strings.Contains(got.Wrong, "no line has the hash 00") {
		t.Errorf("with another hash: %s", got.Wrong)
	}
	if got := verify(&admin.Options{AuditFile: path, AuditKey: []byte("another key of the lines")}, `{}`); !strings.Contains(got.Wrong, "wrong MAC") {
		t.Errorf("with another key: %s", got.Wrong)
	}
}

// What cannot be read says why, and what to do.
func TestAuditErrors(t *testing.T) {
	t.Parallel()
	path := audited(t, 3, nil)
	here := &admin.Options{AuditFile: path}
	for _, tt := range []struct {
		o                      *admin.Options
		path, parameters, says string
		code                   admin.Code
	}{
		{&admin.Options{}, "audit query", `{}`, "start it with --audit-file FILE", admin.NotFound},
		{&admin.Options{}, "audit export", `{}`, "start it with --audit-file FILE", admin.NotFound},
		{&admin.Options{}, "audit verify", `{}`, "start it with --audit-file FILE", admin.NotFound},
		{&admin.Options{AuditFile: path + ".gone"}, "audit verify", `{}`, "no longer exists", admin.NotFound},
		{&admin.Options{AuditFile: path + ".gone"}, "audit query", `{}`, "no longer exists", admin.NotFound},
		{here, "audit query", `{"since":"yesterday"}`, `since "yesterday": must be a time`, admin.Invalid},
		{here, "audit query", `{"until":"7d"}`, `until "7d": must be a time`, admin.Invalid},
		{here, "audit query", `{"address":"here"}`, "192.0.2.0/24", admin.Invalid},
		{here, "audit query", `{"limit":-1}`, "1 to 100,000", admin.Invalid},
		{here, "audit export", `{"limit":100001}`, "1 to 100,000", admin.Invalid},
		{here, "audit query", `{"file":"/etc/passwd"}`, "file", admin.Invalid},
	} {
		client, v := reader(t, tt.o, false), admin.Find(tt.path)
		_, err := client.Run(t.Context(), v, []byte(tt.parameters))
		refused, ok := errors.AsType[*admin.Error](err)
		if !ok || refused.Code != tt.code || !strings.Contains(refused.Message, tt.says) || strings.Contains(refused.Message, path) {
			t.Errorf("%s %s: %v", tt.path, tt.parameters, err)
		}
	}
}

// Few requests read the audit at once, and one that is told so need not wait.
func TestAuditReaders(t *testing.T) {
	t.Parallel()
	a := admin.New(nil, &admin.Options{AuditFile: audited(t, 3, nil)})
	reading, release, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	const most = 4
	for range most {
		go func() {
			first := true
			_, err := a.Stream(context.Background(), "key", admin.Find("audit export"), []byte(`{}`), func([]byte) error {
				if first {
					reading <- struct{}{}
					<-release
				}
				first = false
				return nil
			})
			ended <- err
		}()
	}
	for range most {
		<-reading
	}
	_, err := a.Run(t.Context(), "key", admin.Find("audit verify"), []byte(`{}`))
	if refused, ok := errors.AsType[*admin.Error](err); !ok || refused.Code != admin.Unavailable {
		t.Errorf("one more: %v", err)
	}
	close(release)
	for range most {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if _, err := a.Run(t.Context(), "key", admin.Find("audit verify"), []byte(`{}`)); err != nil {
		t.Errorf("when they have ended: %v", err)
	}
}

// A stranger reads nothing.
func TestAuditUnauthorized(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(admin.NewHandler(admin.New(nil, &admin.Options{AuditFile: audited(t, 3, nil)}), &admin.HandlerOptions{Key: adminKey}))
	defer s.Close()
	response, err := http.Post(s.URL+"/v1/audit/export", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusUnauthorized || strings.Contains(string(body), "user0") {
		t.Errorf("%d %s, %v", response.StatusCode, body, err)
	}
}
