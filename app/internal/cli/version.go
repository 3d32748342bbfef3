package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
)

func versionCommand(c *kit.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit and the supported protocol versions",
		Args:  kit.UsageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := built()
			b.Revisions = kit.Versions()
			if c.JSON {
				return c.PrintJSON(b)
			}
			return b.print(c.Streams.Out)
		},
	}
	c.JSONFlag(cmd)
	return cmd
}

// A buildReport is the output of "parley version".
type buildReport struct {
	Version   string   `json:"version"`
	Commit    string   `json:"commit,omitzero"`
	Modified  bool     `json:"modified,omitzero"` // the build had uncommitted changes
	Go        string   `json:"go"`
	Platform  string   `json:"platform"`
	Revisions []string `json:"revisions"`
}

func built() *buildReport {
	b := &buildReport{
		Version: kit.Version(), Commit: kit.Commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && b.Commit == "":
			b.Commit = s.Value
		case s.Key == "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b *buildReport) print(w io.Writer) error {
	from := b.Commit
	switch {
	case from == "":
		from = "unknown: the build did not record it"
	case b.Modified:
		from += ", with changes"
	}
	_, err := fmt.Fprintf(w, "parley %s\ncommit: %s\nbuilt with: %s for %s\nprotocol: %s\n",
		b.Version, from, b.Go, b.Platform, strings.Join(b.Revisions, ", "))
	return err
}
