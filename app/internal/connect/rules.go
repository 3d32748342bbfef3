package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// Policy returns the policy: the rules of the command line first, then others, then
// those of the program itself.
func (c *Connector) Policy(others []policy.Rule) (*policy.Policy, error) {
	var rules []policy.Rule
	for _, flag := range []struct {
		name     string
		effect   policy.Effect
		patterns []string
	}{{"--deny", policy.Deny, c.Deny}, {"--ask", policy.Ask, c.Ask}, {"--allow", policy.Allow, c.Allow}} {
		for _, pattern := range flag.patterns {
			r, err := policy.ParsePattern(flag.effect, pattern, policy.Source{File: flag.name, Text: pattern})
			if err != nil {
				return nil, kit.Usagef("%w", err)
			}
			rules = append(rules, r)
		}
	}
	roots, err := c.Roots()
	if err != nil {
		return nil, err
	}
	for i, root := range roots {
		raw, err := jsonrpc.JSON(root.URI).AppendJSON(nil)
		if err != nil {
			return nil, fmt.Errorf("--root: %w", err)
		}
		rules = append(rules, policy.Rule{
			Effect: policy.Allow, Kind: policy.KindRoots, Source: policy.Source{File: "--root", Text: c.RootDirs[i]},
			Where: []policy.Predicate{{Pointer: "/uri", Op: policy.OpEquals, Values: []mcp.RawValue{raw}}},
		})
	}
	rules = append(rules, others...)
	rules = append(rules, policy.Rule{
		Effect: policy.Allow, Kind: policy.KindTool, Server: kit.Bundled, Hints: []policy.Hint{policy.HintReadOnly},
		Source: policy.Source{File: "Parley: read-only tools of the built-in server"},
	})
	return policy.New(rules)
}

// Roots returns the directories of --root, in their order. Each is resolved once, so
// that what servers are told of is what the rule allows.
func (c *Connector) Roots() ([]mcp.Root, error) {
	if len(c.rootsFound) == len(c.RootDirs) {
		return slices.Clone(c.rootsFound), nil
	}
	found := make([]mcp.Root, 0, len(c.RootDirs))
	for _, dir := range c.RootDirs {
		root, err := host.Root(dir)
		if err != nil {
			return nil, kit.Usagef("--root: %w", err)
		}
		found = append(found, root)
	}
	c.rootsFound = found
	return slices.Clone(found), nil
}

// LoadConfig reads the person's configuration, or one file that they named.
func (c *Connector) LoadConfig(ctx context.Context, file string, store host.Store) (*config.Config, error) {
	opts := c.ConfigOptions()
	if file != "" {
		cfg, err := config.LoadFile(file, opts)
		if err != nil {
			return nil, kit.Usagef("--config: %w", err)
		}
		checkSignIns(cfg)
		return cfg, nil
	}
	agreed := make(map[string][]string) // by file, what of it the person agreed to
	opts.Approved = func(file, digest string, r *policy.Rule) bool {
		if _, ok := agreed[file]; !ok {
			agreed[file] = nil
			if pin, err := store.Pin(ctx, approvalOf("rules", file)); err == nil && pin != nil && pin.Digest == digest {
				agreed[file] = agreedRules(pin)
			}
		}
		return slices.Contains(agreed[file], RuleWords(r))
	}
	cfg, err := config.Load(opts)
	if err != nil {
		return nil, err
	}
	checkSignIns(cfg)
	return cfg, nil
}

// ConfigOptions returns the places of configuration files. Without a home folder nothing is
// in it, and other places count.
func (c *Connector) ConfigOptions() *config.Options {
	opts := &config.Options{Root: c.Streams.SystemRoot}
	if _, err := os.UserHomeDir(); err != nil {
		opts.Home = filepath.Join(string(filepath.Separator), "nonexistent")
	}
	return opts
}

// managedRules are the rules and limits of the administrator, which hold for servers of
// the command line too.
func (c *Connector) managedRules() (*config.Config, error) {
	if c.managed != nil {
		return c.managed, nil
	}
	cfg, err := config.LoadManaged(c.ConfigOptions())
	c.managed = cfg
	return cfg, err
}

// ManagedDenial returns the error for what the administrator denies also to the person, or nil.
func (c *Connector) ManagedDenial(q *policy.Query) error {
	cfg, err := c.managedRules()
	if err != nil {
		return err
	}
	pol, err := policy.New(cfg.Rules)
	if err != nil {
		return err
	}
	q.Time, q.Client = time.Now(), "parley"
	if v := pol.Decide(q); v.Effect == policy.Deny {
		return &host.ConsentError{Kind: q.Kind, Server: q.Server, Name: q.Name, Why: v.Why(), Refused: true}
	}
	return nil
}

// EntryRules returns rules that deny the tools that an entry switches off.
func EntryRules(entry *config.Server) []policy.Rule {
	var rules []policy.Rule
	for _, name := range entry.DenyTools {
		rules = append(rules, policy.Rule{
			Effect: policy.Deny, Server: policy.Quote(entry.Name), Name: name,
			Source: policy.Source{File: entry.Source.File, Line: entry.Source.Line},
		})
	}
	return rules
}

// MethodDenial returns the error for a request that the administrator denies, or nil.
func (c *Connector) MethodDenial(server, method string, params mcp.RawValue) error {
	var target struct {
		Name      string       `json:"name"`
		URI       string       `json:"uri"`
		Arguments mcp.RawValue `json:"arguments"`
	}
	if json.Unmarshal(params, &target) != nil { // params were checked; such a target the server refuses
		target.Name = ""
	}
	q := &policy.Query{Server: server, Name: target.Name, Arguments: target.Arguments}
	switch method {
	case mcp.MethodToolsCall:
		q.Kind = policy.KindTool
	case mcp.MethodPromptsGet:
		q.Kind = policy.KindPrompt
	case mcp.MethodResourcesRead:
		q.Kind, q.Name, q.Arguments = policy.KindResource, target.URI, params
	default:
		return nil
	}
	return c.ManagedDenial(q)
}
