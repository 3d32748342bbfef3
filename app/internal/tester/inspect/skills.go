package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// The methods of skills.
const (
	methodSkillsList = "skills/list"
	methodSkillsGet  = "skills/get"
	methodDirectory  = "resources/directory/read"
)

// skillsRefused is the error of a method of skills: a server that has none says so in a code
// of its own.
func skillsRefused(method string, err error) error {
	var none *client.NoExtensionError
	if !errors.As(err, &none) {
		return err
	}
	return &Error{
		Exit: ExitUsage, Code: codeNoSkills, err: err,
		Message: fmt.Sprintf("%s: the server does not declare the extension %s", method, skills.ID),
	}
}

func listSkills(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
	list, err := s.list(ctx, methodSkillsList, "skills")
	if err != nil {
		return nil, skillsRefused(methodSkillsList, err)
	}
	if a.Verify {
		return s.verify(ctx, list, a)
	}
	return encoded(map[string][]mcp.RawValue{"skills": list})
}

func getSkill(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
	if a.URI == "" {
		return nil, missing(methodSkillsGet, flagURI)
	}
	raw, err := s.ask(ctx, methodSkillsGet, map[string]string{"uri": a.URI}, nil)
	if err != nil {
		return nil, skillsRefused(methodSkillsGet, err)
	}
	if !a.Verify {
		return &Outcome{Result: raw}, nil
	}
	o, err := strictjson.ParseObject(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", methodSkillsGet, client.ErrMalformed, err)
	}
	entry, ok := o.Object("skill")
	if !ok {
		return nil, fmt.Errorf("%s: %w: it has no skill", methodSkillsGet, client.ErrMalformed)
	}
	return s.verify(ctx, []mcp.RawValue{entry.Raw()}, a)
}

func readDirectory(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
	if a.URI == "" {
		return nil, missing(methodDirectory, flagURI)
	}
	params := map[string]string{"uri": a.URI}
	if a.Cursor != "" {
		params["cursor"] = a.Cursor
	}
	raw, err := s.ask(ctx, methodDirectory, params, nil)
	if err != nil {
		return nil, skillsRefused(methodDirectory, err)
	}
	return &Outcome{Result: raw}, nil
}
