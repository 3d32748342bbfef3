package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
)

// listSkills lists the skills. That reads none of their files.
func listSkills(ctx context.Context, c *client.Client) error {
	list, err := collect(skills.List(ctx, c))
	if err == nil && len(list) == 0 {
		return errors.New("no skill is listed")
	}
	return err
}

// loadTampered makes a scenario in which each SKILL.md is not what its entry says: it is
// refused for this reason, and no other file of the skill is read.
func loadTampered(reason skills.Reason) scenario {
	return func(ctx context.Context, c *client.Client) error {
		list, err := collect(skills.List(ctx, c))
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return errors.New("no skill is listed")
		}
		for _, s := range list {
			_, err := skills.Load(ctx, c, s)
			if differs, ok := errors.AsType[*skills.VerifyError](err); !ok || differs.Reason != reason {
				return errors.Join(fmt.Errorf("loading %s: it must fail by its %s", s.URI, reason), err)
			}
		}
		return nil
	}
}
