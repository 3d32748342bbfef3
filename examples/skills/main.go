// Command skills offers the skills of a folder, and one that it makes itself:
//
//	parley skills list --server skills
//
// The folder is read again when the process gets SIGHUP.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"testing/fstest"
	"time"

	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// newServer makes the server of a folder.
func newServer(folder string) (*server.Server, *skills.Catalog, error) {
	s := server.New("skills", "1.0.0", nil)
	catalog, err := skills.Enable(s, skills.Join(skills.Dir(folder), skills.SourceFunc(daily)), nil)
	return s, catalog, err
}

// daily is a source with one skill, made when the catalog is loaded.
func daily(_ context.Context, add func(skills.Bundle)) error {
	text := "---\nname: daily-report\ndescription: Write the report of the day.\n---\n\n" +
		"The week ends on " + friday(time.Now()).Format(time.DateOnly) + ".\n"
	add(skills.Bundle{
		Path:  "reports/daily-report",
		Files: fstest.MapFS{"SKILL.md": {Data: []byte(text)}},
	})
	return nil
}

// friday is the next Friday, or the day itself.
func friday(day time.Time) time.Time {
	return day.AddDate(0, 0, (int(time.Friday)-int(day.Weekday())+7)%7)
}

// reload reads the folder again whenever the process is told to.
func reload(ctx context.Context, catalog *skills.Catalog, told <-chan os.Signal) {
	for {
		select {
		case <-told:
			if err := catalog.Reload(ctx); err != nil {
				log.Print(err) // the skills stay as they were
			}
		case <-ctx.Done():
			return
		}
	}
}

func main() {
	folder := flag.String("folder", "skills", "where the skills are")
	flag.Parse()
	if err := run(*folder); err != nil {
		log.Fatal(err)
	}
}

func run(folder string) error {
	s, catalog, err := newServer(folder)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	go reload(ctx, catalog, told)
	return stdio.Serve(ctx, s)
}
