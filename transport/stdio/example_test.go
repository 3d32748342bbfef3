package stdio_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

func greeter() *server.Server {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", func(_ context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))
	return s
}

// What the server needs is said before the first Dial; here, where its log
// goes, and a variable of its environment.
func ExampleCommand() {
	ctx := context.Background()
	d := stdio.Command("./dbserver", "--read-only")
	d.ExtraEnv = []string{"DB_PASSWORD=" + os.Getenv("DB_PASSWORD")}
	d.Stderr = os.Stderr
	c, err := client.Connect(ctx, d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
}

// Any stream of bytes will do in place of a pipe: here, both ends of one in
// memory.
func ExampleServeConn() {
	ctx := context.Background()
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- stdio.ServeConn(ctx, far, greeter(), nil) }()
	c, err := client.Connect(ctx, stdio.Conn(near), nil)
	if err != nil {
		log.Fatal(err)
	}
	text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": "Ada"})
	fmt.Println(text, err, c.Close(), <-served)
	// Output: Hello, Ada! <nil> <nil> <nil>
}

// One server for many clients of a TCP port, or of a Unix socket.
func ExampleServeListener() {
	ctx, stop := context.WithCancel(context.Background())
	var config net.ListenConfig
	ln, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- stdio.ServeListener(ctx, ln, greeter(), nil) }()
	for _, name := range []string{"Ada", "Bob"} {
		c, err := client.Connect(ctx, stdio.Dial("tcp", ln.Addr().String()), nil)
		if err != nil {
			log.Fatal(err)
		}
		text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": name})
		fmt.Println(text, err, c.Close())
	}
	stop()
	fmt.Println(<-served)
	// Output:
	// Hello, Ada! <nil> <nil>
	// Hello, Bob! <nil> <nil>
	// context canceled
}
