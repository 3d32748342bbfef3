package admin_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
)

// Errors have a code and a sentence, whatever the request is, and acts are in the audit
// without secrets.
func TestErrorsAndAudit(t *testing.T) {
	t.Parallel()
	s := newSite(t, databasetest.SQLite(t))
	s.addUser("ada")
	self := admin.Self()
	want := []admin.Act{{Verb: "user add", Actor: self, Parameters: map[string]any{"name": "ada"}, Outcome: "ok"}}
	for _, tt := range []struct {
		path, parameters string
		code             admin.Code
		says             string
	}{
		{"user add", `{"name":"ada","password":"another-horse"}`, admin.Conflict, `user "ada" already exists`},
		{"user add", `{"name":"bob","password":"short"}`, admin.Invalid, "at least 8 characters"},
		{"user add", `{"name":"a\nb","password":"correct-horse"}`, admin.Invalid, "this cannot be the name of a user"},
		{"user add", `{"name":" ADA","password":"correct-horse"}`, admin.Conflict, `user " ADA" already exists`},
		{"user add", `{"name":"\u0430\u0501\u0430","password":"correct-horse"}`, admin.Conflict, `user "ada" already exists, and`},
		{"user add", `{"name":"\u0430da","password":"correct-horse"}`, admin.Invalid, "letters of several scripts"},
		{"user add", `{"name":"bob"}`, admin.Invalid, `requires the parameter "password"`},
		{"user add", `{"name":"bob","password":"correct-horse","admin":true}`, admin.Invalid, "admin"},
		{"user add", `{"name":"bob","password":"correct-horse","name":"eve"}`, admin.Invalid, "cannot read"},
		{"user add", `{"name":7,"password":"correct-horse"}`, admin.Invalid, "cannot read"},
		{"user add", `[]`, admin.Invalid, "cannot read"},
		{"user add", `{`, admin.Invalid, "cannot read"},
		{"user add", ``, admin.Invalid, "cannot read"},
		{"user add", `{"name":"` + strings.Repeat("x", 300<<10) + `"}`, admin.Invalid, "larger than"},
		{"user show", `{"name":"bob"}`, admin.NotFound, `user "bob" not found`},
		{"user disable", `{"name":"\u0000"}`, admin.NotFound, "not found"},
		{"user list", `{"limit":1001}`, admin.Invalid, "1 to 1,000"},
		{"user list", `{"limit":-1}`, admin.Invalid, "1 to 1,000"},
		{"user list", `{"after":"%"}`, admin.Invalid, "invalid cursor"},
		{"user list", `{"after":"AA"}`, admin.Invalid, "invalid cursor"},
	} {
		_, err := s.try(tt.path, tt.parameters)
		refused, ok := err.(*admin.Error) //nolint:errorlint // it is the error itself
		if !ok || refused.Code != tt.code || !strings.Contains(refused.Message, tt.says) {
			t.Errorf("%s %.80s: error %#v, want %s: %s", tt.path, tt.parameters, err, tt.code, tt.says)
		}
	}
	for _, act := range s.audit.take() {
		if act.Outcome == "ok" {
			want = append(want[:0], act)
		}
		if act.Actor != self || act.Verb == "" {
			t.Errorf("the audit has %+v", act)
		}
		if strings.Contains(fmt.Sprint(act), "horse") {
			t.Errorf("the audit has a password: %+v", act)
		}
		if (act.Subject != "") != (act.Outcome == "ok") {
			t.Errorf("the audit has the subject %q in %+v", act.Subject, act)
		}
	}
	want[0].Subject = "" // it is random
	if diff := cmp.Diff([]admin.Act{{Verb: "user add", Actor: self, Parameters: map[string]any{"name": "ada"}, Outcome: "ok"}}, want); diff != "" {
		t.Errorf("acts that were done (-want +got):\n%s", diff)
	}
	s.do("user list", `{}`)
	if acts := s.audit.take(); len(acts) != 0 {
		t.Errorf("looking is no act, but the audit has %+v", acts)
	}
}

// Lists come in pages whose cursors lead to the rest.
func TestPages(t *testing.T) {
	t.Parallel()
	db := openDB(t, databasetest.SQLite(t))
	a := admin.New(db, nil)
	var want, got []string
	for i := range 7 {
		name := fmt.Sprintf("user %d", i)
		if _, err := db.AddUser(t.Context(), name, "hash", time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	after, pages := "", 0
	for more := true; more; pages++ {
		result, err := a.Run(t.Context(), "test", admin.Find("user list"), []byte(`{"limit":3,"after":"`+after+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		list := result.(*admin.UserList)
		for _, u := range list.Users {
			got = append(got, u.Name)
		}
		after, more = list.Next, list.Next != ""
		if more != strings.Contains(list.Text(), "--after "+after) {
			t.Errorf("people are told of the next page: %q", list.Text())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || pages != 3 {
		t.Errorf("%d pages (-want +got):\n%s", pages, diff)
	}
}

// The first page of the users tells which names earlier versions let be alike, in letters that show
// how they differ.
func TestAlikeNames(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "db")
	a := admin.New(openDB(t, file), nil)
	raw, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, name := range []string{"ADA", "ada", "eve", "\u0435v\u0435", "zoe"} {
		if _, err := raw.ExecContext(t.Context(), `INSERT INTO users (name, subject, created, hash) VALUES ($1, $1, 0, 'hash')`, name); err != nil {
			t.Fatal(err)
		}
	}
	page := func(parameters string) *admin.UserList {
		t.Helper()
		result, err := a.Run(t.Context(), "test", admin.Find("user list"), []byte(parameters))
		if err != nil {
			t.Fatal(err)
		}
		return result.(*admin.UserList)
	}
	first := page(`{"limit":2}`)
	if diff := cmp.Diff([][]string{{"ADA", "ada"}, {"eve", "\u0435v\u0435"}}, first.Alike); diff != "" {
		t.Errorf("alike (-want +got):\n%s", diff)
	}
	if want := `the names "eve", "\u0435v\u0435" look alike`; !strings.Contains(first.Text(), want) {
		t.Errorf("people are told %q, want %q in it", first.Text(), want)
	}
	if second := page(`{"after":"` + first.Next + `"}`); second.Alike != nil || len(second.Users) != 3 {
		t.Errorf("the second page is %+v", second)
	}
}

// Two operators who change one user at once: one of them adds it, and disabling and enabling
// leave it in the one state or the other.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		operators := []*admin.Admin{admin.New(openDB(t, dsn), nil), admin.New(openDB(t, dsn), nil)}
		do := func(a *admin.Admin, path, parameters string) error {
			_, err := a.Run(t.Context(), "test", admin.Find(path), []byte(parameters))
			return err
		}
		errs := make([]error, len(operators))
		var wg sync.WaitGroup
		for i, a := range operators {
			wg.Go(func() { errs[i] = do(a, "user add", `{"name":"ada","password":"correct-horse"}`) })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("adding a user: %v and %v", errs[0], errs[1])
		}
		for range 5 {
			for i, path := range []string{"user disable", "user enable"} {
				wg.Go(func() { errs[i] = do(operators[i], path, `{"name":"ada"}`) })
			}
			wg.Wait()
			if errs[0] != nil || errs[1] != nil {
				t.Fatal(errs)
			}
		}
	})
}

// Attack: a page in the operator's browser, or another user of the machine, comes to the
// administration at its port.
func TestAttackPort(t *testing.T) {
	t.Parallel()
	const key = "0123456789abcdef0123"
	audit := new(acts)
	h := admin.NewHandler(admin.New(openDB(t, databasetest.SQLite(t)), &admin.Options{Audit: audit.add}), &admin.HandlerOptions{Key: key})
	for name, tt := range map[string]struct {
		change func(*http.Request)
		code   admin.Code
	}{
		"the operator":        {func(*http.Request) {}, ""},
		"no key":              {func(r *http.Request) { r.Header.Del("Authorization") }, admin.Unauthorized},
		"another key":         {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key+"0") }, admin.Unauthorized},
		"an empty key":        {func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, admin.Unauthorized},
		"another scheme":      {func(r *http.Request) { r.Header.Set("Authorization", "Basic "+key) }, admin.Unauthorized},
		"a page":              {func(r *http.Request) { r.Header.Set("Origin", "http://localhost:9001") }, admin.Forbidden},
		"a page, null":        {func(r *http.Request) { r.Header.Set("Origin", "null") }, admin.Forbidden},
		"a page, no origin":   {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, admin.Forbidden},
		"DNS rebinding":       {func(r *http.Request) { r.Host = "evil.example:9001" }, admin.Forbidden},
		"a form":              {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, admin.Invalid},
		"no type":             {func(r *http.Request) { r.Header.Del("Content-Type") }, admin.Invalid},
		"GET":                 {func(r *http.Request) { r.Method = http.MethodGet }, admin.Invalid},
		"no verb":             {func(r *http.Request) { r.URL.Path = "/v1/user/nonsense" }, admin.NotFound},
		"a path of its words": {func(r *http.Request) { r.URL.Path = "/user/list" }, admin.NotFound},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:9001/v1/user/list", strings.NewReader(`{}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+key)
		tt.change(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var got struct {
			Error admin.Error `json:"error"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Errorf("%s: %s: %v", name, w.Body, err)
		}
		if got.Error.Code != tt.code || (w.Code == http.StatusOK) != (tt.code == "") {
			t.Errorf("%s: %d %s, want %q", name, w.Code, w.Body, tt.code)
		}
		acts := audit.take()
		if refused := tt.code == admin.Unauthorized || tt.code == admin.Forbidden; refused != (len(acts) == 1) {
			t.Errorf("%s: the audit has %+v", name, acts)
		}
	}
}

// A socket is for its owner alone, is not made where others could replace it, does not take the
// place of one that is in use or of a file, and takes that of one that was left behind.
func TestSocket(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("permissions are others there")
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "s")
	listen := func(path string) (net.Listener, error) { return admin.Listen(t.Context(), "unix:"+path) }
	first, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v, %v", info.Mode(), err)
	}
	go func() { // answers the question whether it is in use
		for {
			conn, err := first.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	if _, err := listen(path); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("a socket in use: error %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}

	config := net.ListenConfig{}
	stale, err := config.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := listen(path)
	if err != nil {
		t.Fatalf("a socket that was left behind: %v", err)
	}
	defer again.Close()

	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen(file); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file: error %v", err)
	}
	if kept, err := os.ReadFile(file); string(kept) != "kept" {
		t.Errorf("the file is %q, %v", kept, err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := listen(filepath.Join(folder, "other")); err == nil || !strings.Contains(err.Error(), "other users can write") {
		t.Errorf("a folder of everybody: error %v", err)
	}
}

// The administration is on this machine alone.
func TestAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"unix:/run/parley/admin": true, "127.0.0.1:9001": true, "localhost:0": true, "[::1]:9001": true,
		"": false, "unix:": false, ":9001": false, "0.0.0.0:9001": false, "[::]:1": false, "example.com:9001": false, "/run/s": false,
	} {
		if err := admin.CheckAddress(address); (err == nil) != want {
			t.Errorf("%q: error %v", address, err)
		}
	}
}
