package main

import (
	"bufio"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

type person struct {
	Name string `json:"name" minlen:"1"`
}

// TestMain is a server on pipes when the test starts it with an argument.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "pipe" {
		s := server.New("hello", "1.0.0", nil)
		s.Add(server.Tool("greet", "Greets a person by name.", func(_ context.Context, in person) (string, error) {
			return "Hello, " + in.Name + "!", nil
		}))
		if err := stdio.Serve(context.Background(), s); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// The person decides about a call, once or for longer; a rule can take their place.
func TestHost(t *testing.T) {
	t.Parallel()
	const greet = `hello__greet {"name":"Ada"}`
	for _, test := range []struct {
		name, allow, message, typed string
		want, not                   []string
	}{
		{
			"once", "", greet, "y\n",
			[]string{`"name": "Ada"`, "no rule matches", "because the person agreed", "The tool says: Hello, Ada!", "done after 1 calls"},
			nil,
		},
		{"a grant", "", greet, "2\n", []string{"2: from now on: this tool with any arguments", "Hello, Ada!"}, nil},
		{"no, and why", "", greet, "no she is asleep\n", []string{"she is asleep", "done after 0 calls"}, []string{"Hello, Ada!"}},
		{"nobody answers", "", greet, "", []string{"done after 0 calls"}, []string{"Hello, Ada!"}},
		{"a rule", "hello/*", greet, "", []string{"Sent, because rule: allow hello/*", "Hello, Ada!"}, []string{"Do it"}},
		{"an unknown tool", "*", "hello__sing {}", "", []string{`no tool "hello__sing"`}, nil},
		{"no call", "", "hi", "", []string{"Write the name of a tool"}, []string{"Do it"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			person := &terminal{in: bufio.NewScanner(strings.NewReader(test.typed)), out: &out}
			if err := run(t.Context(), person, test.allow, test.message, []string{"hello=" + os.Args[0] + " pipe"}); err != nil {
				t.Fatal(err)
			}
			for _, text := range test.want {
				if !strings.Contains(out.String(), text) {
					t.Errorf("%q is missing in\n%s", text, out.String())
				}
			}
			for _, text := range test.not {
				if strings.Contains(out.String(), text) {
					t.Errorf("%q is in\n%s", text, out.String())
				}
			}
		})
	}
}

// What is wrong with the command line is said.
func TestUsage(t *testing.T) {
	t.Parallel()
	person := &terminal{in: bufio.NewScanner(strings.NewReader("")), out: new(strings.Builder)}
	for _, test := range []struct{ allow, server, want string }{
		{"", "hello", "write NAME=COMMAND"},
		{"", "hello= ", "write NAME=COMMAND"},
		{"mcp__x__y()", "hello=hello", "-allow: parentheses"},
	} {
		err := run(t.Context(), person, test.allow, "hi", []string{test.server})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q, %q: %v, want %q", test.allow, test.server, err, test.want)
		}
	}
}
