package records_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// A code is redeemed once, whoever asks and however often the program starts.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "records")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	ctx, now := context.Background(), time.Now()
	db, err := records.Open(ctx, filepath.Join(folder, "records.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	fmt.Println(
		db.AddGrant(ctx, &issuer.Grant{ID: "g", ClientID: "cli", Subject: "ada", Created: now, Expires: now.Add(time.Hour)}),
		db.AddCode(ctx, issuer.Hash("code"), &issuer.Code{Grant: "g", ClientID: "cli", Expires: now.Add(time.Minute)}),
	)
	for range 2 {
		c, err := db.ConsumeCode(ctx, issuer.Hash("code"), now)
		fmt.Println(c.ClientID, err)
	}
	// Output:
	// <nil> <nil>
	// cli <nil>
	// cli consume code: code was already used
}
