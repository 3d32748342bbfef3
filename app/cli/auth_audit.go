package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// An audit writes what happens at an authorization server: as lines for people
// to standard error, or as JSON lines into a file.
type audit struct {
	p    *program
	mu   sync.Mutex
	file *os.File // nil: for people
	lost error    // the first line that could not be written
}

func (p *program) openAudit(path string) (*audit, error) {
	a := &audit{p: p}
	if path == "" {
		return a, nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, usagef("--audit-file: %w", err)
	}
	a.file = file
	return a, nil
}

// An auditEntry is an event as JSON.
type auditEntry struct {
	Time     time.Time `json:"time"`
	Event    string    `json:"event"`
	Outcome  string    `json:"outcome"`
	Client   string    `json:"client,omitzero"`
	User     string    `json:"user,omitzero"`
	Grant    string    `json:"grant,omitzero"`
	Resource string    `json:"resource,omitzero"`
	Scopes   []string  `json:"scopes,omitzero"`
	Type     string    `json:"grantType,omitzero"`
	Remote   string    `json:"remote,omitzero"`
	Reason   string    `json:"reason,omitzero"`
}

// event takes one event.
func (a *audit) event(_ context.Context, e issuer.Event) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		a.p.note("%s %s", now.Format(time.TimeOnly), auditLine(e))
		return
	}
	raw, err := json.Marshal(auditEntry{
		Time: now.UTC(), Event: e.Name, Outcome: e.Outcome, Client: e.Client, User: e.Subject, Grant: e.Grant,
		Resource: e.Resource, Scopes: e.Scopes, Type: e.GrantType, Remote: e.Remote, Reason: e.Reason,
	})
	if err == nil {
		_, err = a.file.Write(append(raw, '\n'))
	}
	if err != nil && a.lost == nil {
		a.lost = err
		a.p.note("parley: writing the audit file: %v", err)
	}
}

// Close closes the file. Its error says that lines are missing.
func (a *audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	if a.lost != nil {
		err = a.lost
	}
	if err != nil {
		return fmt.Errorf("writing the audit file: %w", err)
	}
	return nil
}
