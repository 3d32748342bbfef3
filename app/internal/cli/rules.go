package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// policyWith makes the policy: the rules of the command line first, then others, then
// those of the program itself.
func (p *program) policyWith(others []policy.Rule) (*policy.Policy, error) {
	var rules []policy.Rule
	for _, flag := range []struct {
		name     string
		effect   policy.Effect
		patterns []string
	}{{"--deny", policy.Deny, p.deny}, {"--ask", policy.Ask, p.ask}, {"--allow", policy.Allow, p.allow}} {
		for _, pattern := range flag.patterns {
			r, err := policy.ParsePattern(flag.effect, pattern, policy.Source{File: flag.name, Text: pattern})
			if err != nil {
				return nil, kit.Usagef("%w", err)
			}
			rules = append(rules, r)
		}
	}
	roots, err := p.resolvedRoots()
	if err != nil {
		return nil, err
	}
	for i, root := range roots {
		raw, err := stringJSON(root.URI)
		if err != nil {
			return nil, fmt.Errorf("--root: %w", err)
		}
		rules = append(rules, policy.Rule{
			Effect: policy.Allow, Kind: policy.KindRoots, Source: policy.Source{File: "--root", Text: p.roots[i]},
			Where: []policy.Predicate{{Pointer: "/uri", Op: policy.OpEquals, Values: []mcp.RawValue{raw}}},
		})
	}
	rules = append(rules, others...)
	rules = append(rules, policy.Rule{
		Effect: policy.Allow, Kind: policy.KindTool, Server: kit.Bundled, Hints: []policy.Hint{policy.HintReadOnly},
		Source: policy.Source{File: "the program: the built-in server may read"},
	})
	return policy.New(rules)
}

// resolvedRoots are the directories of --root, in their order. Each is resolved once, so
// that what servers are told of is what the rule allows.
func (p *program) resolvedRoots() ([]mcp.Root, error) {
	if len(p.rootsFound) == len(p.roots) {
		return slices.Clone(p.rootsFound), nil
	}
	found := make([]mcp.Root, 0, len(p.roots))
	for _, dir := range p.roots {
		root, err := host.Root(dir)
		if err != nil {
			return nil, kit.Usagef("--root: %w", err)
		}
		found = append(found, root)
	}
	p.rootsFound = found
	return slices.Clone(found), nil
}

// loadConfig reads the person's configuration, or one file that they named.
func (p *program) loadConfig(ctx context.Context, file string, store host.Store) (*config.Config, error) {
	opts := p.configOptions()
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
		return slices.Contains(agreed[file], ruleWords(r))
	}
	cfg, err := config.Load(opts)
	if err != nil {
		return nil, err
	}
	checkSignIns(cfg)
	return cfg, nil
}

// configOptions say where configuration is looked for. Without a home folder nothing is
// in it, and other places count.
func (p *program) configOptions() *config.Options {
	opts := &config.Options{Root: p.Streams.SystemRoot}
	if _, err := os.UserHomeDir(); err != nil {
		opts.Home = filepath.Join(string(filepath.Separator), "nonexistent")
	}
	return opts
}

// managedRules are the rules and limits of the administrator, which hold for servers of
// the command line too.
func (p *program) managedRules() (*config.Config, error) {
	if p.managed != nil {
		return p.managed, nil
	}
	cfg, err := config.LoadManaged(p.configOptions())
	p.managed = cfg
	return cfg, err
}

// managedDenial is the error for what the administrator denies also to the person, or nil.
func (p *program) managedDenial(q *policy.Query) error {
	cfg, err := p.managedRules()
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

// entryRules deny the tools that an entry switches off.
func entryRules(entry *config.Server) []policy.Rule {
	var rules []policy.Rule
	for _, name := range entry.DenyTools {
		rules = append(rules, policy.Rule{
			Effect: policy.Deny, Server: policy.Quote(entry.Name), Name: name,
			Source: policy.Source{File: entry.Source.File, Line: entry.Source.Line},
		})
	}
	return rules
}
