package tester

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/tester/registry"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// packageFlags are the flags of the command package.
type packageFlags struct {
	out   string
	force bool

	name, title, description, version, website string
	repository, subfolder                      string

	packages                        []string
	runtime                         string
	arguments, runtimeArgs, env     []string
	serves, sha256, bundle          string
	remotes, remoteSSE, headers, at []string
}

// A packer is the commands of package.
type packer struct{ *connect.Connector }

func (pk *packer) packageCommand() *cobra.Command {
	var flags packageFlags
	cmd := &cobra.Command{
		Use:   "package [flags] [SERVER | -- COMMAND]",
		Short: "Write the server.json that describes a server to registries",
		Long: `Write a server.json, the file that MCP server registries use to list a server, in
the schema of 2025-12-11. If you name a server, Parley asks it for the values that
the flags do not set: its name, title, description, version and website. Flags name
packages and URLs. Parley checks the result as 'parley package check' does. If it is
invalid, Parley does not write it and the exit code is 6.

Write environment variables, headers and variables as NAME or NAME=VALUE, and
arguments as --name, --name=VALUE, VALUE or <hint>, a name for a value that the user
fills in. Options follow after commas: required, secret, repeated, value=, default=,
placeholder=, format=, choices=A|B, and last description=, which includes all text
after it.`,
		Example: `  parley package --name io.github.ada/words --package npm:@ada/words -- ./words
  parley package --name com.example/words --remote https://example.com/mcp \
      --remote-header 'X-API-Key,required,secret,description=Key of the API' -- ./words
  parley package --name io.github.ada/words --package oci:ghcr.io/ada/words:1.0.2 \
      --env 'WORDS_LIMIT,default=10,format=number' --version 1.0.2 --description 'Counts words.'
  parley package check server.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return pk.writePackage(cmd, args, &flags) },
	}
	flags.add(cmd.Flags())
	pk.ServerFlags(cmd) // not those below it
	cmd.AddCommand(pk.packageCheckCommand())
	return cmd
}

func (f *packageFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.out, "out", "server.json", "`FILE` to write; - is standard output")
	set.BoolVar(&f.force, "force", false, "overwrite an existing file")
	set.StringVar(&f.name, "name", "", "`NAME` in the registry, such as io.github.ada/words (default: from the server)")
	set.StringVar(&f.title, "title", "", "`TITLE` to display (default: from the server)")
	set.StringVar(&f.description, "description", "", "`TEXT` that describes the server, at most 100 characters (default: from the server)")
	set.StringVar(&f.version, "version", "", "`VERSION` of the server (default: from the server)")
	set.StringVar(&f.website, "website", "", "`URL` of its website (default: from the server)")
	set.StringVar(&f.repository, "repository", "", "`URL` of its source repository on GitHub or GitLab")
	set.StringVar(&f.subfolder, "subfolder", "", "`FOLDER` of the server in the repository")
	set.StringArrayVar(&f.packages, "package", nil, "`PACKAGE` to install it from: npm:NAME@VERSION, pypi:…, nuget:…, oci:IMAGE:TAG or mcpb:URL;\nwithout @VERSION, the server's version (repeatable)")
	set.StringVar(&f.runtime, "runtime", "", "`PROGRAM` that starts the packages, such as npx, uvx or docker")
	set.StringArrayVar(&f.runtimeArgs, "runtime-arg", nil, "`ARGUMENT` of that program (repeatable)")
	set.StringArrayVar(&f.arguments, "arg", nil, "`ARGUMENT` of the packages (repeatable)")
	set.StringArrayVar(&f.env, "env", nil, "environment `VARIABLE` of the packages (repeatable)")
	set.StringVar(&f.serves, "serves", "", "`URL` where the started packages serve (default: standard input and output)")
	set.StringVar(&f.sha256, "sha256", "", "SHA-256 `HASH` of the bundle of the mcpb package")
	set.StringVar(&f.bundle, "bundle", "", "bundle `FILE` of the mcpb package, to compute its hash")
	set.StringArrayVar(&f.remotes, "remote", nil, "`URL` of the server, over Streamable HTTP (repeatable)")
	set.StringArrayVar(&f.remoteSSE, "remote-sse", nil, "`URL` of the server, over HTTP+SSE (repeatable)")
	set.StringArrayVar(&f.headers, "remote-header", nil, "`HEADER` that the servers at URLs require (repeatable)")
	set.StringArrayVar(&f.at, "variable", nil, "`VARIABLE` in braces in these URLs (repeatable)")
}

// writePackage writes server.json.
func (pk *packer) writePackage(cmd *cobra.Command, args []string, f *packageFlags) error {
	_, t, err := connect.TargetOf(cmd, args, 0)
	if err != nil {
		return err
	}
	doc, err := f.document()
	if err != nil {
		return err
	}
	if len(t.Words)+len(pk.Named) > 0 {
		about, err := pk.askAbout(cmd.Context(), t)
		if err != nil {
			return err
		}
		fill(doc, about)
	}
	for i := range doc.Packages {
		if k := &doc.Packages[i]; k.Version == "" && registry.Versioned(k.RegistryType) {
			k.Version = doc.Version
		}
	}
	text, err := doc.Encode()
	if err != nil {
		return err
	}
	findings := registry.Check(text)
	if !registry.Valid(findings) {
		pk.noteFindings(findings)
		pk.Note("parley: did not write server.json, because it would be invalid")
		return &kit.SilentError{Code: kit.ExitContract}
	}
	if err := pk.writeOut(text, f); err != nil {
		return err
	}
	pk.noteFindings(findings)
	return nil
}

// askAbout asks a server what it says about itself.
func (pk *packer) askAbout(ctx context.Context, t connect.Target) (*mcp.Implementation, error) {
	s, err := pk.TargetServer(ctx, t)
	if err != nil {
		return nil, err
	}
	pk.Given = []host.Server{s}
	about := &mcp.Implementation{}
	err = pk.WithOne(ctx, func(c *client.Client) error {
		if said := c.Server(); said != nil {
			about = said
		}
		return nil
	})
	return about, err
}

// fill adds what a server says about itself to what flags say.
func fill(doc *registry.Server, about *mcp.Implementation) {
	doc.Name = cmp.Or(doc.Name, about.Name)
	doc.Title = cmp.Or(doc.Title, about.Title)
	doc.Description = cmp.Or(doc.Description, about.Description)
	doc.Version = cmp.Or(doc.Version, about.Version)
	doc.WebsiteURL = cmp.Or(doc.WebsiteURL, about.WebsiteURL)
}

// document is what the flags say.
func (f *packageFlags) document() (*registry.Server, error) {
	doc := &registry.Server{
		Schema: registry.Schema, Name: f.name, Title: f.title, Description: f.description, Version: f.version, WebsiteURL: f.website,
	}
	switch {
	case f.repository != "":
		source := "github"
		if strings.Contains(f.repository, "gitlab") {
			source = "gitlab"
		}
		doc.Repository = &registry.Repository{URL: f.repository, Source: source, Subfolder: f.subfolder}
	case f.subfolder != "":
		return nil, kit.Usagef("--subfolder requires --repository")
	}
	var err error
	if doc.Packages, err = f.packaged(); err != nil {
		return nil, err
	}
	doc.Remotes, err = f.remote()
	return doc, err
}

// packaged are the packages, each with all arguments and variables.
func (f *packageFlags) packaged() (list []registry.Package, err error) {
	alone := len(f.arguments) + len(f.runtimeArgs) + len(f.env) + len(f.serves) + len(f.sha256) + len(f.bundle) + len(f.runtime)
	if len(f.packages) == 0 && alone > 0 {
		return nil, kit.Usagef("--arg, --runtime, --runtime-arg, --env, --serves, --sha256 and --bundle require --package")
	}
	hash, err := f.hash()
	if err != nil {
		return nil, err
	}
	var common registry.Package
	if common.Args, err = parsed("--arg", f.arguments, registry.ParseArgument); err != nil {
		return nil, err
	}
	if common.RuntimeArgs, err = parsed("--runtime-arg", f.runtimeArgs, registry.ParseArgument); err != nil {
		return nil, err
	}
	if common.Environment, err = parsed("--env", f.env, registry.ParseVariable); err != nil {
		return nil, err
	}
	if list, err = parsed("--package", f.packages, registry.ParsePackage); err != nil {
		return nil, err
	}
	bundles := 0
	for i := range list {
		k := &list[i]
		k.Args, k.RuntimeArgs, k.Environment, k.RuntimeHint = common.Args, common.RuntimeArgs, common.Environment, f.runtime
		if f.serves != "" {
			k.Transport = registry.Transport{Type: registry.TransportStreamable, URL: f.serves}
		}
		if k.RegistryType == "mcpb" {
			k.FileSHA256 = hash
			bundles++
		}
	}
	if hash != "" && bundles != 1 {
		return nil, kit.Usagef("--sha256 and --bundle require exactly one mcpb package, not %d", bundles)
	}
	return list, nil
}

// hash is that of the bundle, or empty.
func (f *packageFlags) hash() (string, error) {
	switch {
	case f.sha256 != "" && f.bundle != "":
		return "", kit.Usagef("--sha256 and --bundle cannot be used together")
	case f.bundle == "":
		return f.sha256, nil
	}
	file, err := os.Open(f.bundle)
	if err != nil {
		return "", kit.Usagef("--bundle: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", kit.Usagef("--bundle: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// remote are the servers at URLs, each with all headers and the variables of its URL.
func (f *packageFlags) remote() (list []registry.Transport, err error) {
	for _, u := range f.remotes {
		list = append(list, registry.Transport{Type: registry.TransportStreamable, URL: u})
	}
	for _, u := range f.remoteSSE {
		list = append(list, registry.Transport{Type: registry.TransportSSE, URL: u})
	}
	if len(list) == 0 && len(f.headers)+len(f.at) > 0 {
		return nil, kit.Usagef("--remote-header and --variable require --remote or --remote-sse")
	}
	headers, err := parsed("--remote-header", f.headers, registry.ParseVariable)
	if err != nil {
		return nil, err
	}
	variables, err := parsed("--variable", f.at, registry.ParseVariable)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Headers = headers
		for _, v := range variables {
			if !strings.Contains(list[i].URL, "{"+v.Name+"}") {
				continue
			}
			if list[i].Variables == nil {
				list[i].Variables = map[string]registry.Input{}
			}
			list[i].Variables[v.Name] = v.Input
		}
	}
	return list, nil
}

// parsed reads the texts of a flag.
func parsed[T any](flag string, texts []string, parse func(string) (T, error)) ([]T, error) {
	var list []T
	for _, text := range texts {
		v, err := parse(text)
		if err != nil {
			return nil, kit.Usagef("%s: %w", flag, err)
		}
		list = append(list, v)
	}
	return list, nil
}

// writeOut writes the file, or to standard output.
func (pk *packer) writeOut(text []byte, f *packageFlags) error {
	if f.out == "-" {
		return pk.Print(string(text))
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(f.out, how, 0o644) // it is to be published
	if errors.Is(err, fs.ErrExist) {
		return kit.Usagef("%s already exists; overwrite it with --force, or name another file with --out", f.out)
	}
	if err != nil {
		return kit.Usagef("--out: %w", err)
	}
	_, err = io.Copy(file, bytes.NewReader(text))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", f.out, err)
	}
	if pk.JSON {
		return pk.Print(string(text))
	}
	return pk.Println(f.out)
}
