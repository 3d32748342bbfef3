package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/parley-mcp/parley/app/internal/audit"
)

var auditVerbs = []*Verb{
	long(reading(verb("audit query", "Show lines of the audit, oldest first", queryAudit))),
	long(reading(streamed("audit export", "Export unchanged lines of the audit", true, exportAudit))),
	long(reading(verb("audit verify", "Find lines of the audit that were changed, removed, inserted or moved", verifyAudit))),
}

const (
	// maxReaders is how many requests read the audit at once, which may have gigabytes.
	maxReaders = 4
	// defaultLines is how many lines a query answers with, and maxLines how many may be asked for.
	defaultLines = 100
	maxLines     = 100_000
	// maxLineBytes is how many bytes the lines have that are kept in memory.
	maxLineBytes = 16 << 20
)

// An auditFilter says which lines are meant.
type auditFilter struct {
	Since   string `json:"since" help:"lines from this \x60TIME\x60 on, such as 2026-11-25T08:00:00Z"`
	Until   string `json:"until" help:"lines before this \x60TIME\x60"`
	Event   string `json:"event" help:"lines of this \x60EVENT\x60, or of those that begin with it"`
	User    string `json:"user" help:"lines about the user with this \x60NAME\x60 or subject"`
	Client  string `json:"client" help:"lines about the client with this \x60ID\x60 or name"`
	Address string `json:"address" help:"lines of requests from this \x60ADDRESS\x60 or network"`
	Limit   int    `json:"limit" help:"at most so \x60MANY\x60, the newest"`
}

func (in *auditFilter) filter() (*audit.Filter, error) {
	f := &audit.Filter{Event: in.Event, User: in.User, Client: in.Client, Last: in.Limit, LastBytes: maxLineBytes}
	var err error
	for _, moment := range []struct {
		name, text string
		at         *time.Time
	}{{"since", in.Since, &f.Since}, {"until", in.Until, &f.Until}} {
		if moment.text == "" {
			continue
		}
		if *moment.at, err = time.Parse(time.RFC3339, moment.text); err != nil {
			return nil, errorf(Invalid, "%s %q: must be a time such as 2026-11-25T08:00:00Z", moment.name, moment.text)
		}
	}
	if in.Address != "" {
		if f.Address, err = audit.ParseAddress(in.Address); err != nil {
			return nil, errorf(Invalid, "address: %w", err)
		}
	}
	if in.Limit < 0 || in.Limit > maxLines {
		return nil, errorf(Invalid, "limit must be 1 to 100,000")
	}
	return f, nil
}

// An AuditRead is what was read of the audit.
type AuditRead struct {
	// Unreadable is how many lines could not be read, and were left out.
	Unreadable int `json:"unreadable,omitzero"`
	// Incomplete says that the last line was not whole.
	Incomplete bool `json:"incomplete,omitzero"`
}

// Text implements Result.
func (r *AuditRead) Text() string {
	text := ""
	if r.Incomplete {
		text = new(audit.IncompleteError).Error() + "\n"
	}
	if r.Unreadable > 0 {
		text += fmt.Sprintf("omitted %d unreadable lines; run 'parley auth audit verify' to find the first one\n", r.Unreadable)
	}
	return text
}

// AuditLines are lines of the audit, JSON objects, oldest first.
type AuditLines struct {
	Lines []json.RawMessage `json:"lines"`
	AuditRead
}

// Text implements Result.
func (l *AuditLines) Text() string {
	var b bytes.Buffer
	for _, line := range l.Lines {
		b.Write(append(line, '\n'))
	}
	return b.String() + l.AuditRead.Text()
}

func queryAudit(ctx context.Context, a *Admin, in *auditFilter) (*AuditLines, error) {
	in.Limit = cmp.Or(in.Limit, defaultLines)
	out := &AuditLines{Lines: []json.RawMessage{}}
	read, err := exportAudit(ctx, a, in, func(line []byte) error {
		out.Lines = append(out.Lines, bytes.Clone(line))
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.AuditRead = *read
	return out, nil
}

func exportAudit(ctx context.Context, a *Admin, in *auditFilter, write func(line []byte) error) (*AuditRead, error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	end, err := a.readAudit()
	if err != nil {
		return nil, err
	}
	defer end()
	out := new(AuditRead)
	var writing error
	out.Unreadable, err = audit.Query(ctx, a.opts.AuditFile, f, func(raw []byte, _ *audit.Line) error {
		writing = write(raw)
		return writing
	})
	large, isLarge := errors.AsType[*audit.TooLargeError](err)
	switch {
	case writing != nil:
		return nil, writing
	case errors.As(err, new(*audit.IncompleteError)):
		out.Incomplete = true
		return out, nil
	case isLarge:
		return nil, errorf(Invalid, "%w; lower the limit, or export lines without one", large)
	case err != nil && isFinding(ctx, err):
		return nil, errorf(Conflict, "cannot read the audit: %w; run 'parley auth audit verify' to find the invalid line", err)
	case err != nil:
		return nil, auditGone(err)
	}
	return out, nil
}

// readAudit begins to read the audit, if there is one and few others do. end ends it.
func (a *Admin) readAudit() (end func(), err error) {
	if a.opts.AuditFile == "" {
		return nil, errorf(NotFound, "this server has no audit file and logs events to its standard error; "+
			"start it with --audit-file FILE to have one")
	}
	select {
	case a.readers <- struct{}{}:
		return func() { <-a.readers }, nil
	default:
		return nil, errorf(Unavailable, "%d requests are already reading the audit; try again when one of them ends", maxReaders)
	}
}

// isFinding says that an error is about what is in the audit, not about reading it.
func isFinding(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.As(err, new(*fs.PathError))
}

func auditGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errorf(NotFound, "the server's audit file no longer exists; the next line creates a new one")
	}
	return err
}

type auditHash struct {
	Expect string `json:"expect" help:"\x60HASH\x60 that an earlier verify printed, which a line must have, or the one before the first"`
}

// An AuditChain is what a check of the audit found.
type AuditChain struct {
	audit.Chain
	// Wrong is what is wrong with it: the first line that is. "" if nothing is.
	Wrong string `json:"wrong,omitzero"`
}

// Text implements Result.
func (c *AuditChain) Text() string {
	if c.Wrong != "" {
		return c.Wrong + "\n"
	}
	return fmt.Sprintf("%d lines, the last with the hash\n%s\n", c.Lines, c.Hash)
}

func verifyAudit(ctx context.Context, a *Admin, in *auditHash) (*AuditChain, error) {
	end, err := a.readAudit()
	if err != nil {
		return nil, err
	}
	defer end()
	chain, err := audit.Verify(ctx, a.opts.AuditFile, &audit.VerifyOptions{Expect: in.Expect, Key: a.opts.AuditKey})
	out := &AuditChain{Chain: chain}
	switch {
	case err != nil && isFinding(ctx, err):
		out.Wrong = err.Error()
	case err != nil:
		return nil, auditGone(err)
	}
	return out, nil
}
