package tester

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/tester/registry"
	"github.com/parley-mcp/parley/host"
)

func (pk *packer) packageCheckCommand() *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a server.json",
		Long: `Check a server.json: fields and their types, names, versions, URLs, hashes,
lengths, arguments and variables, against the schema of 2025-12-11 and the
additional requirements of registries. Parley fetches nothing. Each finding has a
line and location, a reason and a fix. An error is a value that a registry rejects,
or an exposed secret; a warning is a likely mistake. The exit code is 6 if there are
errors, or with --strict any findings. FILE is - for standard input.`,
		Example: `  parley package check server.json
  parley package check --json server.json`,
		Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return pk.checkPackage(args[0], strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	return cmd
}

// A packageReport is what "parley package check --json" tells.
type packageReport struct {
	File     string             `json:"file"`
	Valid    bool               `json:"valid"`
	Findings []registry.Finding `json:"findings"`
}

func (pk *packer) checkPackage(name string, strict bool) error {
	text, err := pk.readPackage(name)
	if err != nil {
		return err
	}
	r := packageReport{File: name, Findings: registry.Check(text)}
	r.Valid = registry.Valid(r.Findings) && (!strict || len(r.Findings) == 0)
	if pk.JSON {
		err = pk.PrintJSON(r)
	} else {
		err = pk.printFindings(name, r)
	}
	if err == nil && !r.Valid {
		err = &kit.SilentError{Code: kit.ExitContract}
	}
	return err
}

// readPackage reads a file, or standard input, and no more of it than is checked.
func (pk *packer) readPackage(name string) ([]byte, error) {
	in := pk.Streams.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, kit.Usagef("%w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, registry.MaxFile+1))
	if err != nil {
		return nil, kit.Usagef("reading %s: %w", name, err)
	}
	return text, nil
}

// printFindings writes findings as lines that editors understand.
func (pk *packer) printFindings(name string, r packageReport) error {
	if len(r.Findings) == 0 {
		return pk.Println(name + " is valid")
	}
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(findingLine(name, f) + "\n")
	}
	if r.Valid {
		b.WriteString(name + " is valid\n")
	}
	return pk.Print(b.String())
}

// noteFindings writes findings about what was made to standard error.
func (pk *packer) noteFindings(findings []registry.Finding) {
	for _, f := range findings {
		pk.Note("parley: %s", findingLine("server.json", f))
	}
}

// findingLine is a finding in one line. Names of members are the file's.
func findingLine(name string, f registry.Finding) string {
	place := f.Pointer
	if place == "" {
		place = "the file"
	}
	return host.EscapeLine(fmt.Sprintf("%s:%d: %s: %s: %s; %s [%s]", name, f.Line, f.Severity, place, f.Reason, f.Fix, f.Code))
}
