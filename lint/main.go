package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := options{Out: os.Stdout}
	flag.BoolVar(&o.Deps, "deps", false, "analyze dependencies, too")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, "usage: lint [-deps] [MODULE]...\n\n"+
			"Check the workspace of the current folder, and the modules outside it in the folders MODULE.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.Modules = flag.Args()
	found, err := run(ctx, &o)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	case found > 0:
		fmt.Fprintln(os.Stderr, found, "findings")
		os.Exit(1)
	}
}

// options says what is checked.
type options struct {
	// Dir is the folder of go.work. Default: the current one.
	Dir string
	// Modules are the folders of modules outside the workspace, relative to Dir.
	Modules []string
	// Deps makes the analyzers read the source code of dependencies.
	Deps bool
	// Out receives one line for each finding.
	Out io.Writer
}

// A finding is one line of the output. Of two that are equal, one is printed.
type finding struct {
	file      string // relative to the root
	line, col int
	linter    string // the name that a nolint comment gives
	text      string
}

// run prints the findings and returns how many there are.
func run(ctx context.Context, o *options) (int, error) {
	root, err := filepath.Abs(cmp.Or(o.Dir, "."))
	if err != nil {
		return 0, err
	}
	all, err := check(ctx, root, "", o.Deps)
	if err != nil {
		return 0, err
	}
	for _, module := range o.Modules {
		found, err := check(ctx, root, module, o.Deps)
		if err != nil {
			return 0, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.col, b.col),
			strings.Compare(a.linter, b.linter), strings.Compare(a.text, b.text))
	})
	all = slices.Compact(all)
	for _, f := range all {
		if _, err := fmt.Fprintf(o.Out, "%s:%d:%d: %s (%s)\n", f.file, f.line, f.col, f.text, f.linter); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}
