package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/transport"
)

// connect connects a client that knows skills.
func connect(ctx context.Context, server transport.Dialer) (*client.Client, error) {
	return client.Connect(ctx, server, &client.Options{
		Extensions: []client.Extension{skills.Extension()},
	})
}

// find is the entry of the first skill with a name.
func find(ctx context.Context, c *client.Client, name string) (*skills.Skill, error) {
	for s, err := range skills.List(ctx, c) {
		if err != nil {
			return nil, err
		}
		if s.Name() == name && s.Check() == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("there is no skill %q", name)
}

// load is the text of a skill for the model, and that of a file that it refers to.
func load(ctx context.Context, c *client.Client, s *skills.Skill, ref string) (text, file string, err error) {
	doc, err := skills.Load(ctx, c, s)
	if err != nil {
		return "", "", err
	}
	uri, err := s.Resolve(ref)
	if err != nil {
		return "", "", err
	}
	got, err := skills.Read(ctx, c, s, uri)
	if err != nil {
		return "", "", err
	}
	return doc.Body, string(got.Data), nil
}

// refresh loads a skill again after it has changed, if the person agrees.
func refresh(ctx context.Context, c *client.Client, held *skills.Skill, approve func(*skills.Skill) bool) (*skills.Skill, error) {
	_, err := skills.Load(ctx, c, held)
	var differs *skills.VerifyError
	if !errors.As(err, &differs) {
		return held, err
	}
	now, err := skills.Get(ctx, c, held.URI)
	if err != nil {
		return nil, err
	}
	if !approve(now) {
		return nil, differs
	}
	return now, nil
}
