// Command site offers resources: a directory, a text, a value that is computed
// and watched, and a template. See docs/guide/resources.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// cities stands for a database.
var cities = map[string]string{"oslo": "Oslo, 59.9 N 10.7 E", "lima": "Lima, 12.0 S 77.0 W"}

type city struct {
	Name string `uri:"name"`
}

// read gives one city of the template city:///{name}.
func read(_ context.Context, v city) (string, error) {
	text, ok := cities[v.Name]
	if !ok {
		return "", server.ErrNotFound
	}
	return text, nil
}

// names completes the variable name of the template.
func names(_ context.Context, value string, _ map[string]string) ([]string, error) {
	var found []string
	for name := range cities {
		if strings.HasPrefix(name, value) {
			found = append(found, name)
		}
	}
	return found, nil
}

// clock is read anew each time.
func clock(context.Context) (string, error) {
	return time.Now().UTC().Format(time.RFC3339), nil
}

// tick runs while a client is subscribed to clock:///utc.
func tick(ctx context.Context, changed func()) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			changed()
		}
	}
}

func newServer(docs *os.Root) *server.Server {
	s := server.New("site", "1.0.0", &server.Options{Cache: server.Cache{TTL: time.Minute}})
	s.Add(
		server.Text("site:///licence", "licence", "You may copy this."),
		server.Resource("clock:///utc", "time", clock).With(server.ResourceOptions{
			Description: "the time of this machine, in UTC",
			Cache:       &server.Cache{}, // stale at once
			Watch:       tick,
		}),
		server.Template("city:///{name}", "city", read).With(server.TemplateOptions{
			MIMEType: "text/plain",
			Complete: map[string]server.Completer{"name": names},
		}),
		server.Directory("docs:///", docs),
	)
	return s
}

func main() {
	dir := flag.String("docs", ".", "directory to offer")
	flag.Parse()
	docs, err := os.OpenRoot(*dir)
	if err != nil {
		log.Fatal(fmt.Errorf("site: %w", err))
	}
	defer docs.Close()
	if err := stdio.Serve(context.Background(), newServer(docs)); err != nil {
		log.Fatal(err)
	}
}
