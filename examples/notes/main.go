// Command notes keeps notes in SQLite: tools to write and find them, a resource
// for each, a prompt over all. See docs/guide/testing.md.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"strconv"
	"strings"

	_ "modernc.org/sqlite"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A note is what tools give.
type note struct {
	ID    int64  `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// A book is the notes of one database, and the server that offers them.
type book struct {
	db     *sql.DB
	server *server.Server
}

func open(file string) (*book, error) {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer; a database in memory has one connection
	_, err = db.ExecContext(context.Background(),
		`CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL)`)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	b := &book{db: db, server: server.New("notes", "1.0.0", nil)}
	b.server.Add(
		server.Tool("add_note", "Adds a note.", b.add),
		server.Tool("edit_note", "Replaces the text of a note.", b.edit),
		server.Tool("find_notes", "Finds notes by words in title or text.", b.find),
		server.Template("note:///{id}", "note", b.read).With(server.TemplateOptions{
			Description: "one note, by its id",
			Complete:    map[string]server.Completer{"id": b.ids},
		}),
		server.Prompt("summary", "Sums up all notes.", b.summary),
	)
	return b, nil
}

func (b *book) add(ctx context.Context, in struct {
	Title string `json:"title" minlen:"1" maxlen:"100"`
	Text  string `json:"text" maxlen:"10000"`
},
) (note, error) {
	res, err := b.db.ExecContext(ctx, `INSERT INTO notes (title, text) VALUES (?, ?)`, in.Title, in.Text)
	if err != nil {
		return note{}, err
	}
	id, err := res.LastInsertId()
	return note{ID: id, Title: in.Title, Text: in.Text}, err
}

// edit notifies the subscribers of the note.
func (b *book) edit(ctx context.Context, in struct {
	ID   int64  `json:"id" min:"1"`
	Text string `json:"text" maxlen:"10000"`
},
) (mcp.None, error) {
	res, err := b.db.ExecContext(ctx, `UPDATE notes SET text = ? WHERE id = ?`, in.Text, in.ID)
	if err != nil {
		return mcp.None{}, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return mcp.None{}, mcp.Errorf("there is no note %d", in.ID)
	}
	b.server.ResourceUpdated(uri(in.ID))
	return mcp.None{}, nil
}

func uri(id int64) string { return "note:///" + strconv.FormatInt(id, 10) }

type found struct {
	Notes []note `json:"notes"`
}

type findIn struct {
	Words string `json:"words" desc:"what to look for; empty for all" maxlen:"100"`
}

func (b *book) find(ctx context.Context, in findIn) (found, error) {
	rows, err := b.db.QueryContext(ctx, `SELECT id, title, text FROM notes
		WHERE instr(lower(title || ' ' || text), lower(?)) > 0 ORDER BY id LIMIT 50`, in.Words)
	if err != nil {
		return found{}, err
	}
	defer rows.Close()
	out := found{Notes: []note{}}
	for rows.Next() {
		var n note
		if err := rows.Scan(&n.ID, &n.Title, &n.Text); err != nil {
			return found{}, err
		}
		out.Notes = append(out.Notes, n)
	}
	return out, rows.Err()
}

func (b *book) read(ctx context.Context, v struct {
	ID int64 `uri:"id"`
},
) (string, error) {
	var title, text string
	err := b.db.QueryRowContext(ctx, `SELECT title, text FROM notes WHERE id = ?`, v.ID).Scan(&title, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", server.ErrNotFound
	}
	return title + "\n\n" + text, err
}

func (b *book) ids(ctx context.Context, value string, _ map[string]string) ([]string, error) {
	all, err := b.find(ctx, findIn{})
	var ids []string
	for _, n := range all.Notes {
		if id := strconv.FormatInt(n.ID, 10); strings.HasPrefix(id, value) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

func (b *book) summary(ctx context.Context, _ mcp.None) (string, error) {
	all, err := b.find(ctx, findIn{})
	lines := []string{"Sum up these notes in three sentences:"}
	for _, n := range all.Notes {
		lines = append(lines, n.Title+": "+n.Text)
	}
	return strings.Join(lines, "\n"), err
}

func main() {
	file := flag.String("db", "notes.db", "file that keeps the notes")
	flag.Parse()
	b, err := open(*file)
	if err != nil {
		log.Fatal(err)
	}
	defer b.db.Close()
	if err := stdio.Serve(context.Background(), b.server); err != nil {
		log.Fatal(err)
	}
}
