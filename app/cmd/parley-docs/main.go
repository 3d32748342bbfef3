// Command parley-docs writes the manual pages and the shell completions of
// parley to a folder, for packages. The second argument is the date on the pages.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/parley-mcp/parley/app/internal/cli"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: parley-docs FOLDER DATE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "parley-docs:", err)
		os.Exit(1)
	}
}

func write(dir, date string) error {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.Commands()
	for shell, generate := range map[string]func(name string) error{
		"bash":       func(name string) error { return root.GenBashCompletionFileV2(name, true) },
		"zsh":        root.GenZshCompletionFile,
		"fish":       func(name string) error { return root.GenFishCompletionFile(name, true) },
		"powershell": root.GenPowerShellCompletionFileWithDesc,
	} {
		if err := generate(filepath.Join(dir, "parley."+shell)); err != nil {
			return err
		}
	}
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{
		Section: "1", Date: &day, Source: "Parley", Manual: "Parley Manual",
	}, dir)
}
