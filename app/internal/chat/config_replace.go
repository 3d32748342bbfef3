package chat

import (
	"context"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
)

// A replacement is an entry that starts a built-in server in the place of a reference server.
type replacement struct {
	entry config.Entry
	// builtin is the name of the built-in server, and caution what a person should know before.
	builtin, caution string
}

// references are the built-in servers by the names of the reference servers that they take the place of,
// without what packages and images have before them.
var references = map[string]string{
	"everything": "everything", "fetch": "fetch", "filesystem": "filesystem", "git": "git", "memory": "memory",
	"sequential-thinking": "thinking", "sequentialthinking": "thinking", "time": "time",
}

// replaceReference makes an entry that starts a built-in server, if e starts a reference server in a
// plain way: with npx, uvx or docker, and nothing that the built-in server has not.
func replaceReference(e *config.Entry) *replacement {
	if e.Command == "" || e.EnvFile != "" {
		return nil
	}
	name, args, ok := referenceOf(e.Command, e.Args)
	if !ok {
		return nil
	}
	named := references[name]
	r := &replacement{entry: *e, builtin: named}
	switch named {
	case "everything":
		if len(args) > 0 && !slices.Equal(args, []string{"stdio"}) {
			return nil // over HTTP
		}
		args = nil
	case "memory", "thinking":
		if len(args) > 0 {
			return nil
		}
		if file := e.Env["MEMORY_FILE_PATH"]; named == "memory" && file == "" {
			r.caution = "It starts with an empty memory: the other server keeps its file, memory.jsonl, in the folder of its package. Add --file FILE to use that file."
		} else if named == "memory" && !path.IsAbs(file) && !strings.Contains(file, `:\`) {
			r.caution = "MEMORY_FILE_PATH is relative, to the folder of the other's package; here it is to the working directory."
		}
	}
	r.entry.Command, r.entry.Args = "parley", append([]string{"serve", named}, args...)
	return r
}

// referenceOf finds the name of the reference server that a command starts, and its own arguments.
func referenceOf(command string, args []string) (name string, rest []string, ok bool) {
	program := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(path.Base(strings.ReplaceAll(command, `\`, "/"))), ".exe"), ".cmd")
	if program == "cmd" && len(args) > 2 && strings.EqualFold(args[0], "/c") { // as Windows starts npx
		return referenceOf(args[1], args[2:])
	}
	prefix, flags := "", []string(nil)
	switch program {
	case "npx", "bunx":
		prefix, flags = "@modelcontextprotocol/server-", []string{"-y", "--yes", "-q", "--quiet"}
	case "uvx":
		prefix = "mcp-server-"
	case "docker":
		if len(args) == 0 || args[0] != "run" {
			return "", nil, false
		}
		args = args[1:]
		prefix, flags = "mcp/", []string{"-i", "--interactive", "--rm", "--init"} // no folder and no network of its own
	default:
		return "", nil, false
	}
	for len(args) > 0 && slices.Contains(flags, args[0]) {
		args = args[1:]
	}
	if len(args) == 0 {
		return "", nil, false
	}
	name, ok = strings.CutPrefix(args[0], prefix)
	name, _, _ = strings.Cut(strings.ReplaceAll(name, ":", "@"), "@") // without the version
	if _, known := references[name]; !ok || !known {
		return "", nil, false
	}
	return name, args[1:], true
}

// offerReplacement says how an entry could be replaced, and returns the entry to write: that of the
// built-in server if the person agrees, or has with --replace.
func (st *settings) offerReplacement(ctx context.Context, name string, e *config.Entry, replace bool) (*config.Entry, error) {
	r := replaceReference(e)
	if r == nil {
		return e, nil
	}
	if _, err := exec.LookPath(r.entry.Command); err != nil {
		if r.entry.Command, err = connect.OwnProgram(); err != nil {
			return nil, err
		}
	}
	name = host.EscapeLine(name)
	if !replace && !st.Streams.InTerminal {
		st.Note("The server %s is one that Parley has built in: 'parley serve %s'. With --replace the copy starts that.", name, r.builtin)
		return e, nil
	}
	st.Note("The server %s is one that Parley has built in. In your own file:", name)
	st.Note("  - %s", commandLine(e))
	st.Note("  + %s", commandLine(&r.entry))
	if r.caution != "" {
		st.Note("  %s", r.caution)
	}
	if !replace {
		if yes, err := st.AskYes(ctx, "Start the built-in one? [y/N] "); err != nil || !yes {
			return e, err
		}
	}
	return &r.entry, nil
}

// commandLine is the command of an entry as a person would type it; values that may be secret are
// hidden.
func commandLine(e *config.Entry) string {
	words := []string{kit.ShellWord(e.Command)}
	for _, arg := range config.RedactArgs(e.Args) {
		words = append(words, kit.ShellWord(arg))
	}
	return host.EscapeLine(strings.Join(words, " "))
}
