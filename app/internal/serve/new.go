package serve

import (
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/serve/scaffold"
)

func (g *group) newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Create a new project: a server",
		Args:  kit.NoCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(g.newServerCommand())
	return cmd
}

// newServerFlags are the flags of the command new server.
type newServerFlags struct{ dir, module, replace string }

func (g *group) newServerCommand() *cobra.Command {
	var flags newServerFlags
	cmd := &cobra.Command{
		Use:   "server NAME",
		Short: "Create a new server in Go, with a test",
		Long: `Create a new server in Go in a folder: a tool, a prompt and a resource, a test that
uses them in every protocol version and over every transport, and files that run the
test and 'parley doctor' on GitHub and GitLab. Parley overwrites nothing: the folder
must be new or empty.

The server uses the version of the library that this program was built with. If the
program was not built from a released version, go.mod names no version, and 'go mod
tidy' uses the newest one. With --replace, the server uses a copy of the library on
this machine.`,
		Example: `  parley new server words
  parley new server words --module github.com/ada/words --dir src/words
  parley new server words --replace ../parley`,
		Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return g.newServer(args[0], &flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.dir, "dir", "", "`FOLDER` to write to (default: the name)")
	f.StringVar(&flags.module, "module", "", "`PATH` of the Go module, such as github.com/ada/words (default: the name)")
	f.StringVar(&flags.replace, "replace", "", "`FOLDER` with a copy of the library to use instead of a released version")
	g.JSONFlag(cmd)
	return cmd
}

// A newServerReport is what "parley new server --json" tells.
type newServerReport struct {
	Folder  string   `json:"folder"`
	Module  string   `json:"module"`
	Library string   `json:"library,omitzero"` // version
	Replace string   `json:"replace,omitzero"`
	Files   []string `json:"files"`
	Next    []string `json:"next"` // commands to run
}

func (g *group) newServer(name string, flags *newServerFlags) error {
	if err := scaffold.CheckName(name); err != nil {
		return kit.Usagef("%w", err)
	}
	s := &scaffold.Server{Name: name, Module: flags.module, Version: libraryVersion(), Replace: flags.replace}
	if s.Module == "" {
		s.Module = name
	}
	r := &newServerReport{Folder: flags.dir, Module: s.Module, Library: s.Version, Replace: s.Replace}
	if r.Folder == "" {
		r.Folder = name
	}
	var err error
	if r.Files, err = s.Write(r.Folder); err != nil {
		return kit.Usagef("cannot create the server %s: %w", name, err)
	}
	r.Next = []string{"cd " + kit.ShellWord(r.Folder), "go mod tidy", "go test ./...", "go build -o " + name + " ."}
	if s.Replace != "" { // go.mod and go.sum are complete
		r.Library, r.Next = "", append(r.Next[:1], r.Next[2:]...)
	}
	if g.JSON {
		return g.PrintJSON(r)
	}
	for _, file := range r.Files {
		if err := g.Println(filepath.Join(r.Folder, filepath.FromSlash(file))); err != nil {
			return err
		}
	}
	if s.Version == "" && s.Replace == "" {
		g.Note("parley: this program was not built from a released version, so go.mod names no version of %s;\n  'go mod tidy' uses the newest release, and --replace FOLDER uses a copy", scaffold.Library)
	}
	g.Note("parley: created the server %s; build and test it:\n    %s", name, strings.Join(r.Next, "\n    "))
	return nil
}

// released is what versions look like that can be had from others.
var released = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// libraryVersion is the version of the library that this program was built with; empty if it is
// not a released one.
func libraryVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path == scaffold.Library && dep.Replace == nil && dep.Version != "v0.0.0" && released.MatchString(dep.Version) {
			return dep.Version
		}
	}
	return ""
}
