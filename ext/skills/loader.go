package skills

import (
	"context"
	"errors"
	"iter"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// A Loader lists, checks and reads skills for a host, which keeps their entries as JSON:
// it is what host.Options.Skills takes. The zero value is ready, and may be used by many
// goroutines.
type Loader struct{}

// Offers reports whether the server has declared the extension on this connection.
func (Loader) Offers(c *client.Client) bool {
	caps := c.Capabilities()
	if caps == nil {
		return false
	}
	_, ok := caps.Extensions[ID]
	return ok
}

// List lists entries as the server sent them; see [List].
func (Loader) List(ctx context.Context, c *client.Client) iter.Seq2[mcp.RawValue, error] {
	return func(yield func(mcp.RawValue, error) bool) {
		for s, err := range List(ctx, c) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(s.raw, nil) {
				return
			}
		}
	}
}

// Get asks for an entry and returns it as the server sent it; see [Get].
func (Loader) Get(ctx context.Context, c *client.Client, uri string) (mcp.RawValue, error) {
	s, err := Get(ctx, c, uri)
	if err != nil {
		return nil, err
	}
	return s.raw, nil
}

// Check says why an entry must not be loaded; see [Skill.Check].
func (Loader) Check(entry mcp.RawValue) error {
	_, err := parseEntry(entry)
	return err
}

// Load reads the SKILL.md of an entry and returns all its text; see [Load].
func (Loader) Load(ctx context.Context, c *client.Client, entry mcp.RawValue) (string, error) {
	s, err := parseEntry(entry)
	if err != nil {
		return "", err
	}
	d, err := Load(ctx, c, s)
	if err != nil {
		return "", err
	}
	return d.Text, nil
}

// Read reads the file that a path in the text of a skill refers to, see [Skill.Resolve]
// and [Read]. It returns the URI and the type of the file, too. A path that is none, or
// leaves the skill, is a [VerifyError], as a file that the entry does not list: nothing
// is sent then.
func (Loader) Read(ctx context.Context, c *client.Client, entry mcp.RawValue, path string) (uri, mimeType string, data []byte, err error) {
	s, err := parseEntry(entry)
	if err != nil {
		return "", "", nil, err
	}
	if uri, err = s.Resolve(path); err != nil {
		return "", "", nil, &VerifyError{URI: s.URI, Reason: ReasonUnlisted, Detail: err.Error()}
	}
	got, err := Read(ctx, c, s, uri)
	if err != nil {
		return "", "", nil, err
	}
	return got.URI, got.MIMEType, got.Data, nil
}

// Differs reports whether an error says that what came is not what the entry says: a
// [VerifyError].
func (Loader) Differs(err error) bool { return errors.As(err, new(*VerifyError)) }

// parseEntry reads an entry that may be loaded.
func parseEntry(entry mcp.RawValue) (*Skill, error) {
	s := new(Skill)
	if err := strictjson.Unmarshal(entry, s, deep); err != nil {
		return nil, &EntryError{Reason: err.Error()}
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s, nil
}
