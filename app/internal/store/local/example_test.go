package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
)

func Example() {
	folder, err := os.MkdirTemp("", "parley")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	db, err := local.Open(filepath.Join(folder, "sessions.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	ctx, at := context.Background(), time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, err := range []error{
		db.CreateSession(ctx, &host.SessionInfo{ID: "s", Title: "Files", Created: at}),
		db.Append(ctx, "s", host.Record{N: 1, Time: at, Body: &host.TextRecord{Text: "Hello."}}),
		db.Audit(ctx, &host.AuditEntry{Time: at, Session: "s", Event: "called", Server: "files", Name: "read"}),
		db.Export(ctx, "s", os.Stdout),
	} {
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	n, err := db.VerifyAudit(ctx)
	fmt.Println(n, err)
	// Output:
	// {"version":1,"session":{"id":"s","title":"Files","created":"2030-01-02T03:04:05Z"},"ancestors":[]}
	// {"n":1,"session":"s","time":"2030-01-02T03:04:05Z","kind":"text","body":{"text":"Hello."}}
	// 1 <nil>
}
