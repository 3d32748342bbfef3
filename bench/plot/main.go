// Command plot draws what was measured, without measuring again.
//
//	go run ./plot -in ../docs/benchmarks/results.json -out ../docs/benchmarks
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-mcp/parley/bench/plot/figures"
	"github.com/parley-mcp/parley/bench/report"
)

func main() {
	in := flag.String("in", "../docs/benchmarks/results.json", "the `file` of results")
	out := flag.String("out", "../docs/benchmarks", "the `folder` for the pictures")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1) // this is main
	}
}

func run(in, out string) error {
	r, err := report.Load(in)
	if err != nil {
		return err
	}
	drawn, err := figures.Write(r, out)
	for _, f := range drawn {
		fmt.Fprintln(os.Stderr, filepath.Join(out, f.File))
	}
	return err
}
