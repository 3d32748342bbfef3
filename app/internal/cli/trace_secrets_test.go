package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Secrets that are planted, by places. Each is found in one way: by its name, its shape, or
// its value, which the program was given or saw before in a secret place.
var planted = map[string]string{
	"header by value":         "plum-header-4417",
	"authorization by name":   "Plum-bearer-5521",
	"argument by name":        "plum argument 6632",
	"argument by shape":       "ghp_PlumPlum0123456789abcdefghijABCDEFGH",
	"result by name":          "plum-result-7743",
	"result by shape":         "glpat-PlumPlum0123456789ab",
	"structured by name":      "plum/structured/8854",
	"error by name":           "plum-error-9965",
	"environment by name":     "plum-environment-1076",
	"environment by flag":     "plum-flagged-2187",
	"environment of a server": "plum-server-3298",
	"URL by name":             "plum-query-4309",
	"URL of a resource":       "plum-userinfo-5410",
	"standard error by name":  "plum-stderr-6521",
	"standard error by shape": "sk-ant-PlumPlum0123456789abcdef",
}

// leaker is a server that gives away what it knows wherever it can. It was told the secrets of
// these places.
func leaker(places ...string) *server.Server {
	s := server.New("leaker", "1", nil)
	s.Add(server.Tool("leak", "Gives away secrets.", func(_ context.Context, in struct {
		Password string `json:"password"`
		Note     string `json:"note"`
	},
	) (*mcp.CallToolResult, error) {
		all := "the secrets are"
		for _, place := range append(places, "environment by name", "environment by flag") {
			all += " " + planted[place]
		}
		return &mcp.CallToolResult{
			Content: mcp.Contents{
				&mcp.TextContent{Text: fmt.Sprintf("you said %s and %s", in.Password, in.Note)}, &mcp.TextContent{Text: all},
				&mcp.TextContent{Text: base64.StdEncoding.EncodeToString([]byte(planted["environment by name"]))},
				&mcp.TextContent{Text: "password: " + planted["result by name"] + "\nuse " + planted["result by shape"]},
				&mcp.TextContent{Text: `{"api_key": "` + planted["structured by name"] + `"}`},
				&mcp.TextContent{Text: "see https://ada:" + planted["URL of a resource"] + "@example.com/?api_key=" + planted["URL by name"]},
			},
			StructuredContent: mcp.RawValue(`{"apiKey":"` + planted["structured by name"] + `","again":"` + planted["result by name"] + `"}`),
		}, nil
	}), server.Tool("fail", "Fails.", func(context.Context, mcp.None) (string, error) {
		return "", mcp.Errorf("login failed, token=%s", planted["error by name"])
	}))
	return s
}

func leakerMain() {
	fmt.Fprintf(os.Stderr, "connecting with password=%s\n", planted["standard error by name"])
	fmt.Fprintf(os.Stderr, "and %s\n", planted["standard error by shape"])
	if err := stdio.Serve(context.Background(), leaker("environment of a server")); err != nil {
		os.Exit(1)
	}
}

// No secret that was planted is in a trace, a HAR file, a cassette, or what is said meanwhile.
func TestTraceSecrets(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	h := streamable.NewHandler(leaker("header by value", "authorization by name"), nil)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session="+planted["authorization by name"])
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		far.Close()
	})
	t.Setenv("PARLEY_LEAK_TOKEN", planted["environment by name"])
	t.Setenv("PARLEY_LEAK_PLAIN", planted["environment by flag"])
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	calls := []string{
		"--secret-env", "PARLEY_LEAK_PLAIN", "--call", "fail",
		"--call", "leak password='" + planted["argument by name"] + "' note=" + planted["argument by shape"],
	}
	overHTTP := append(calls[:len(calls):len(calls)], "--header", "X-Own: "+planted["header by value"],
		"--header", "Authorization: Bearer "+planted["authorization by name"], far.URL+"/mcp?api_key="+planted["URL by name"])
	child := []string{"--", "env", "SOME_TOKEN=" + planted["environment of a server"], "leaker"}
	overStdio := append(calls[:len(calls):len(calls)], child...)
	between := "env PARLEY_LEAK_TOKEN=" + planted["environment by name"] + " PARLEY_LEAK_PLAIN=" + planted["environment by flag"] + " parley record --secret-env PARLEY_LEAK_PLAIN --out " + file("between") + " -- " + strings.Join(child[1:], " ")
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			for _, args := range [][]string{
				append([]string{"trace", "--har", file("har")}, overHTTP...),
				append([]string{"trace", "--json"}, overHTTP...),
				append([]string{"trace"}, overStdio...),
				append([]string{"trace", "--json", "--har", file("stdio har")}, overStdio...),
				append([]string{"record", "--out", file("http cassette")}, overHTTP...),
				append([]string{"record", "--out", file("stdio cassette")}, overStdio...),
				append([]string{"replay", "--secret-env", "PARLEY_LEAK_PLAIN", file("stdio cassette")}, child...),
				{"call", "leak", "note=" + planted["argument by shape"], "password=" + planted["argument by name"], "--server", between},
			} {
				if strings.HasPrefix(version, "2024") && args[len(args)-1] == overHTTP[len(overHTTP)-1] {
					continue // it has another transport
				}
				var out, said bytes.Buffer
				code := cli.Main(t.Context(), append([]string{"--protocol", version}, args...), &kit.Streams{In: strings.NewReader(""), Out: &out, Err: &said})
				if code != 0 && code != 5 {
					t.Fatalf("%s: exit code %d\n%s", args[0], code, said.String())
				}
				if args[0] != "call" && (out.Len() > 0) != (args[0] != "record") {
					t.Errorf("%s: %d bytes", args[0], out.Len())
				}
				if args[0] != "call" { // whose result it is
					findPlanted(t, args[0], out.String()+said.String())
				}
			}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				text, err := os.ReadFile(file(f.Name()))
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(text), "leak") {
					t.Errorf("%s has no call", f.Name())
				}
				findPlanted(t, f.Name(), string(text))
			}
		})
	}
}

func findPlanted(t *testing.T, where, text string) {
	t.Helper()
	for place, secret := range planted {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret))} {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s: the secret in the %s is in it: …%q", where, place, text[max(0, at-150):min(len(text), at+len(form)+20)])
			}
		}
	}
}

// Proves: a session with a server that others wrote is recorded, in front of it and alone, and
// differs in nothing from the same server, twice.
func TestRecordForeignServer(t *testing.T) {
	racetest.SkipSerial(t)
	needNPX(t)
	if ranInOwnProcess(t) {
		return
	}
	foreign := []string{"--", installed(t, "everything"), "stdio"}
	file := filepath.Join(t.TempDir(), "foreign")
	between := filepath.Join(t.TempDir(), "between")
	do := func(want string, args ...string) {
		t.Helper()
		code, out, err := run(t, "", args...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%v: exit code %d and %q, want %q\n%s", args, code, out, want, err)
		}
	}
	do("", append([]string{"record", "--out", file, "--list", "--call", "get-sum", "a=1", "b=2"}, foreign...)...)
	do("is 3", "call", "get-sum", "a=1", "b=2", "--server", "parley record --out "+between+" "+strings.Join(foreign, " "))
	for _, cassette := range []string{file, between} {
		do("is 3", "call", "get-sum", "a=1", "b=2", "--server", "parley replay "+cassette)
		for range 2 {
			do("no difference", append([]string{"replay", cassette}, foreign...)...)
		}
	}
}
