package secrets_test

import (
	"context"
	"fmt"
	"os"

	"github.com/parley-mcp/parley/app/internal/store/secrets"
)

func ExampleOpen() {
	folder, err := os.MkdirTemp("", "secrets")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	s, err := secrets.Open(&secrets.Options{Kind: secrets.File, Folder: folder})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Println(s.Set(ctx, "tokens https://mcp.example/mcp", []byte("secret")))
	names, err := s.Names(ctx)
	fmt.Println(names, err)
	// Output:
	// <nil>
	// [tokens https://mcp.example/mcp] <nil>
}
