package connect

import (
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/model"
)

// KeyValues parses key=value arguments.
func KeyValues(args []string) ([]model.Pair, error) {
	list := make([]model.Pair, 0, len(args))
	for _, a := range args {
		key, value, found := strings.Cut(a, "=")
		if !found || key == "" {
			return nil, kit.Usagef("argument %q: must have the form key=value", a)
		}
		list = append(list, model.Pair{Key: key, Value: value})
	}
	return list, nil
}

// Pairs parses key=value arguments, each with a key of its own.
func Pairs(args []string) ([]model.Pair, error) {
	list, err := KeyValues(args)
	for i, pair := range list {
		if slices.ContainsFunc(list[:i], func(p model.Pair) bool { return p.Key == pair.Key }) {
			return nil, kit.Usagef("argument %q: duplicate key", pair.Key)
		}
	}
	return list, err
}

// Texts parses key=value arguments whose values are Texts.
func Texts(args []string) (map[string]string, error) {
	list, err := Pairs(args)
	if err != nil {
		return nil, err
	}
	m := make(map[string]string, len(list))
	for _, p := range list {
		m[p.Key] = p.Value
	}
	return m, nil
}
