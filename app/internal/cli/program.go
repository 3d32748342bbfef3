package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/model"
)

// A program is one run of the command line.
type program struct {
	*connect.Connector

	held    map[string]*os.File // locks of the sessions that are open here, by their ids
	unkept  bool                // there is no folder for sessions
	welcome string              // what the screen says at the beginning of a first conversation
}

// keyValues parses key=value arguments.
func keyValues(args []string) ([]model.Pair, error) {
	list := make([]model.Pair, 0, len(args))
	for _, a := range args {
		key, value, found := strings.Cut(a, "=")
		if !found || key == "" {
			return nil, kit.Usagef("argument %q: write it as key=value", a)
		}
		list = append(list, model.Pair{Key: key, Value: value})
	}
	return list, nil
}

// pairs parses key=value arguments, each with a key of its own.
func pairs(args []string) ([]model.Pair, error) {
	list, err := keyValues(args)
	for i, pair := range list {
		if slices.ContainsFunc(list[:i], func(p model.Pair) bool { return p.Key == pair.Key }) {
			return nil, kit.Usagef("argument %q is given twice", pair.Key)
		}
	}
	return list, err
}

// texts parses key=value arguments whose values are texts.
func texts(args []string) (map[string]string, error) {
	list, err := pairs(args)
	if err != nil {
		return nil, err
	}
	m := make(map[string]string, len(list))
	for _, p := range list {
		m[p.Key] = p.Value
	}
	return m, nil
}

// aboutServers reports whether flags were given that are for commands that use a server.
func (p *program) aboutServers() bool { return len(p.Named)+len(p.Headers) > 0 }
