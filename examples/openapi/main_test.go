package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
)

// shop is an API that says what it was asked.
func shop(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/pets/404" {
		http.Error(w, "no such pet", http.StatusNotFound)
		return
	}
	_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, body)
}

func TestOperations(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(shop))
	defer api.Close()
	raw, err := os.ReadFile("petstore.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(raw, api.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := mcptest.Client(t, s)
	for _, test := range []struct{ tool, args, want string }{
		{"list_pets", `{"kind":"cat","limit":2}`, "GET /pets?kind=cat&limit=2 "},
		{"get_pet", `{"id":7}`, "GET /pets/7? "},
		{"add_pet", `{"body":{"name":"Tom","kind":"cat"}}`, `POST /pets? {"name":"Tom","kind":"cat"}`},
	} {
		got, err := client.Call[string](t.Context(), c, test.tool, mcp.RawValue(test.args))
		if err != nil || got != test.want {
			t.Errorf("%s: %q, %v", test.tool, got, err)
		}
	}
	for _, test := range []struct{ tool, args, want string }{
		{"get_pet", `{"id":404}`, "no such pet"},
		{"get_pet", `{"id":"../admin"}`, "invalid arguments: /id"},
		{"list_pets", `{"limit":1000}`, "invalid arguments: /limit"},
	} {
		_, err := client.Call[string](t.Context(), c, test.tool, mcp.RawValue(test.args))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.tool, err)
		}
	}
}

// A bad operation is left out, and the others are served.
func TestBadOperation(t *testing.T) {
	s, err := newServer([]byte(`{"info":{"title":"x","version":"1"},"paths":{"/a":{
		"get":{"operationId":"good"},
		"put":{"operationId":"bad","parameters":[{"name":"x","in":"query","schema":{"type":"nonsense"}}]}}}}`), "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tool, err := range mcptest.Client(t, s).Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if strings.Join(names, " ") != "good" {
		t.Errorf("tools: %q", names)
	}
}
