package connect

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/transport/stdio"
)

// named is a --server flag that begins with a name of its own.
var named = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]{0,31})=(.+)$`)

// hostAndPort is an address that lacks what makes it a URL.
var hostAndPort = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]{1,5}(/.*)?$`)

// SplitFlag splits a --server flag; most have no name.
func SplitFlag(flag string) (name, rest string) {
	if m := named.FindStringSubmatch(flag); m != nil {
		return m[1], m[2]
	}
	return "", flag
}

// Servers returns the servers of the --server flags; without any, the built-in one.
func (c *Connector) Servers(ctx context.Context) ([]host.Server, error) {
	if c.Given != nil {
		return c.Given, nil
	}
	if len(c.Named) == 0 {
		c.Named = []string{kit.Bundled}
	}
	if c.Protocol != "" {
		if versions := kit.Versions(); !slices.Contains(versions, c.Protocol) {
			return nil, kit.Usagef("--protocol %q: unsupported version; must be one of %s", c.Protocol, strings.Join(versions, ", "))
		}
	}
	if err := c.oneURL(); err != nil {
		return nil, err
	}
	c.SignIns.several = len(c.Named) > 1
	var list []host.Server
	for _, flag := range c.Named {
		s, err := c.server(ctx, flag)
		if err != nil {
			return nil, kit.Usagef("--server %q: %w", Shown(flag), err)
		}
		s.Name = unique(list, s.Name)
		if err := c.permitted(s.Name, flag); err != nil {
			return nil, kit.Usagef("--server %q: %w", Shown(flag), err)
		}
		if c.Protocol != "" {
			s.Versions = []string{c.Protocol}
		}
		list = append(list, s)
	}
	return list, nil
}

// permitted returns nil if the administrator's limits let the server of a flag be started.
// What this program itself does is not limited by them.
func (c *Connector) permitted(name, flag string) error {
	if flag == kit.Bundled {
		return nil
	}
	managed, err := c.managedRules()
	if err != nil {
		return err
	}
	_, command := SplitFlag(flag)
	s := &config.Server{Name: name, Transport: config.TransportHTTP, URL: command}
	if !kit.IsURL(command) {
		words, err := kit.Fields(command)
		if err != nil {
			return err
		}
		s = &config.Server{Name: name, Transport: config.TransportStdio, Command: words[0], Args: words[1:]}
	}
	return managed.Permits(s)
}

// OwnProgram returns the path of this program. The system does not know it where
// /proc is not mounted; then it is where the name leads that it was started by.
func OwnProgram() (string, error) {
	self, err := os.Executable()
	if err == nil {
		return self, nil
	}
	if named, lookErr := exec.LookPath(os.Args[0]); lookErr == nil {
		return filepath.Abs(named)
	}
	return "", err
}

// server makes one server: of a name that is built in, of a URL, or of a
// command line.
func (c *Connector) server(ctx context.Context, flag string) (host.Server, error) {
	if flag == kit.Bundled {
		self, err := OwnProgram()
		if err != nil {
			return host.Server{}, fmt.Errorf("finding the parley executable, which serves it: %w", err)
		}
		d := c.command(self, "serve", kit.Bundled)
		return host.Server{
			Name: kit.Bundled, Key: "built in", BuiltIn: true, Dialer: d, Origin: "built in", Dir: startFolder("", nil, nil), Trusted: true,
		}, nil
	}
	name, command := SplitFlag(flag)
	if kit.IsURL(command) {
		return c.remote(ctx, name, command)
	}
	words, err := kit.Fields(command)
	if err != nil {
		return host.Server{}, err
	}
	if len(words) == 0 || words[0] == "" {
		return host.Server{}, fmt.Errorf("must be the command that starts the server, its URL, or %q", kit.Bundled)
	}
	if len(words) == 1 && hostAndPort.MatchString(words[0]) {
		return host.Server{}, fmt.Errorf("not a command; for an address write the complete URL, such as http://localhost:8080/mcp")
	}
	if name == "" {
		name = nameOf(words)
	}
	d := c.command(words[0], words[1:]...)
	return host.Server{Name: name, Key: "command " + command, Dialer: d, Origin: strings.Join(words, " "), Dir: startFolder("", words, nil)}, nil
}

// command is a dialer that starts a program. What that logs is shown with
// --verbose, or kept for errors that refer to it.
func (c *Connector) command(name string, args ...string) *stdio.CommandDialer {
	d := stdio.Command(name, args...)
	d.Logger, d.Tap = c.Logger(), c.Tap
	if !c.Verbose {
		d.Stderr = &c.Output.heard
	}
	LearnCommand(c.Streams.Masker(), d)
	return d
}

// runners are programs that run others: the server's name is in their arguments.
var runners = []string{
	"npx", "pnpx", "bunx", "uvx", "pipx", "node", "deno", "bun", "python", "python3", "go", "docker", "podman", "sh", "bash", "env", "npm", "pnpm", "uv",
}

// commands are arguments of runners that name no server.
var commands = []string{"run", "exec", "dlx", "x", "tool"}

// nameOf makes a short name for a server out of its command line.
func nameOf(words []string) string {
	name := base(words[0])
	if slices.Contains(runners, name) && !slices.Contains(words, "-c") {
		for _, w := range words[1:] {
			if !strings.HasPrefix(w, "-") && !slices.Contains(commands, w) && !strings.Contains(w, "=") {
				name = base(w)
				break
			}
		}
	}
	clean := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return -1
	}, name)
	clean = strings.Trim(clean[:min(len(clean), 32)], "._-")
	if clean == "" {
		return "server"
	}
	return clean
}

// base is the last part of a path or package, without version and ending.
func base(word string) string {
	name := path.Base(strings.ReplaceAll(word, `\`, "/"))
	if at := strings.LastIndex(name, "@"); at > 0 {
		name = name[:at]
	}
	name, _, _ = strings.Cut(name, ":") // tags of images
	for _, ending := range []string{".exe", ".js", ".mjs", ".ts", ".py", ".sh", ".go"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// unique numbers a name that is taken.
func unique(list []host.Server, name string) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(list, func(s host.Server) bool { return s.Name == name })
	}
	if !taken(name) {
		return name
	}
	for i := 2; ; i++ {
		if numbered := name + "-" + strconv.Itoa(i); !taken(numbered) {
			return numbered
		}
	}
}
