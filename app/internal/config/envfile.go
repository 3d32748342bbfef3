package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxEnvFile bounds a file of variables, maxEnvLines its variables.
const (
	maxEnvFile  = 256 << 10
	maxEnvLines = 1000
)

// readEnvFile puts the variables of the entry's envFile before those of env, which win.
func (r *entryReader) readEnvFile(p *plan) {
	if r.envFile == "" {
		return
	}
	path, err := r.v.expand(r.d.syntax, r.envFile, targetProcess)
	if err == nil && path.open() {
		err = fmt.Errorf("an input cannot name a file: write its path")
	}
	if err != nil {
		r.s.fail(fmt.Errorf("envFile: %w", err))
		return
	}
	within := ""
	if r.v.foreign {
		within = r.v.m.project
	}
	data, err := readFile(r.v.resolve(path.fill(nil), r.v.folder), within, maxEnvFile)
	if err != nil {
		r.s.fail(fmt.Errorf("envFile %s: %w", show(r.envFile), readError(err)))
		return
	}
	variables, err := parseEnv(data)
	if err != nil {
		r.s.fail(fmt.Errorf("envFile %s: %w", show(r.envFile), err))
		return
	}
	r.s.EnvFile = r.envFile
	for _, v := range variables {
		r.s.EnvFileNames = append(r.s.EnvFileNames, v.Name)
		p.env = append(p.env, planned{v.Name, text{{literal: v.Value}}})
	}
}

// parseEnv reads lines of NAME=value. A value in double quotes may have the escapes \n, \r,
// \t, \" and \\ and go over several lines; one in single quotes is taken as it is; any other
// ends before " #". Nothing is expanded.
func parseEnv(data []byte) ([]Header, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("the text is not UTF-8: save it as UTF-8")
	}
	rest := strings.ReplaceAll(string(data), "\r\n", "\n")
	var found []Header
	for line := 1; rest != ""; {
		if len(found) > maxEnvLines {
			return nil, fmt.Errorf("there are more than %d variables", maxEnvLines)
		}
		current, after, _ := strings.Cut(rest, "\n")
		name, value, ok := strings.Cut(current, "=")
		name = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(name), "export "))
		switch trimmed := strings.TrimSpace(current); {
		case trimmed == "" || trimmed[0] == '#':
			rest, line = after, line+1
			continue
		case !ok || !namePattern.MatchString(name):
			return nil, fmt.Errorf("line %d: write NAME=value", line)
		}
		value = strings.TrimLeft(value, " \t")
		if value != "" && strings.ContainsRune(`"'`, rune(value[0])) {
			start := strings.Index(rest, "=") + 1
			start += strings.IndexByte(rest[start:], value[0])
			text, n := quotedValue(rest[start:])
			if n == 0 {
				return nil, fmt.Errorf("line %d: the value of %s has no closing quote", line, name)
			}
			line += strings.Count(rest[:start+n], "\n") + 1
			_, rest, _ = strings.Cut(rest[start+n:], "\n")
			found = append(found, Header{name, text})
			continue
		}
		if i := strings.Index(value, " #"); i >= 0 {
			value = value[:i]
		}
		found = append(found, Header{name, strings.TrimSpace(value)})
		rest, line = after, line+1
	}
	return found, nil
}

// quotedValue is the text between quotes at the start of s, and the length with quotes; 0
// if the closing quote is missing.
func quotedValue(s string) (string, int) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			return b.String(), i + 1
		case c == '\\' && quote == '"' && i+1 < len(s):
			i++
			b.WriteString(unescape(s[i]))
		default:
			b.WriteByte(c)
		}
	}
	return "", 0
}

func unescape(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case 't':
		return "\t"
	case '"', '\\':
		return string(rune(c))
	default:
		return `\` + string(rune(c))
	}
}
