package main

import (
	"os"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport/stdio"
)

// TestMain is the program itself when the test starts it as a server.
func TestMain(m *testing.M) {
	if os.Getenv("HELLO") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestHello(t *testing.T) {
	self := stdio.Command(os.Args[0])
	self.ExtraEnv = []string{"HELLO=1"}
	c, err := client.Connect(t.Context(), self, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := client.Call[string](t.Context(), c, "greet", person{Name: "Ada"})
	if err != nil || text != "Hello, Ada!" {
		t.Errorf("%q, %v", text, err)
	}
}
