package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	auditlog "github.com/parley-mcp/parley/app/internal/audit"
	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// An auditSource is where an audit is read.
type auditSource interface {
	name() string
	// query gives the lines that a filter means to show. It always returns what was read.
	query(ctx context.Context, f *auditlog.Filter, show func(raw []byte) error) (admin.AuditRead, error)
	verify(ctx context.Context, expect string) (auditlog.Chain, error)
}

// auditSource is the file of the arguments, or the audit of the server of --admin. key is that of the
// lines in the file; nil if it is not known.
func (f *adminFlags) auditSource(args []string, key []byte) (auditSource, error) {
	switch {
	case f.admin == "" && f.keyFile != "":
		return nil, kit.Usagef("--admin-key-file requires --admin")
	case f.admin == "" && len(args) == 0:
		return nil, kit.Usagef("missing audit FILE; name it, or use --admin with the address of a server")
	case f.admin == "":
		return &auditFile{args[0], key}, nil
	case len(args) > 0:
		return nil, kit.Usagef("a FILE and --admin cannot be used together: with --admin the server reads its own audit")
	}
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	return &servedAudit{f.admin, client}, nil
}

// An auditFile is an audit file on this machine.
type auditFile struct {
	path string
	key  []byte
}

func (a *auditFile) name() string { return a.path }

func (a *auditFile) query(ctx context.Context, f *auditlog.Filter, show func(raw []byte) error) (read admin.AuditRead, err error) {
	read.Unreadable, err = auditlog.Query(ctx, a.path, f, func(raw []byte, _ *auditlog.Line) error { return show(raw) })
	if errors.As(err, new(*auditlog.IncompleteError)) {
		read.Incomplete, err = true, nil
	}
	return read, err
}

func (a *auditFile) verify(ctx context.Context, expect string) (auditlog.Chain, error) {
	return auditlog.Verify(ctx, a.path, &auditlog.VerifyOptions{Expect: expect, Key: a.key})
}

// A servedAudit is the audit of a server, which reads it.
type servedAudit struct {
	address string
	client  *admin.Client
}

func (a *servedAudit) name() string { return a.address }

// query exports: the lines come as they are read, however many there are.
func (a *servedAudit) query(ctx context.Context, f *auditlog.Filter, show func(raw []byte) error) (read admin.AuditRead, err error) {
	parameters := map[string]any{"event": f.Event, "user": f.User, "client": f.Client, "limit": f.Last}
	for name, moment := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !moment.IsZero() {
			parameters[name] = moment.Format(time.RFC3339Nano)
		}
	}
	if f.Address.IsValid() {
		parameters["address"] = f.Address.String()
	}
	raw, err := json.Marshal(parameters)
	if err != nil {
		return read, fmt.Errorf("cannot encode the filter: %w", err)
	}
	result, err := a.client.Stream(ctx, admin.Find("audit export"), raw, show)
	if done, ok := result.(*admin.AuditRead); ok && err == nil {
		read = *done
	}
	return read, reachedError(err)
}

func (a *servedAudit) verify(ctx context.Context, expect string) (chain auditlog.Chain, err error) {
	raw, err := json.Marshal(map[string]string{"expect": expect})
	if err != nil {
		return chain, fmt.Errorf("cannot encode the hash: %w", err)
	}
	result, err := a.client.Run(ctx, admin.Find("audit verify"), raw)
	if err != nil {
		return chain, reachedError(err)
	}
	found, ok := result.(*admin.AuditChain)
	if ok && found.Wrong != "" {
		return chain, errors.New(found.Wrong)
	}
	if ok {
		chain = found.Chain
	}
	return chain, nil
}
