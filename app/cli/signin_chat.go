package cli

import (
	"context"
	"fmt"
	"sync"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth/login"
)

// confirmInChat asks the person in the conversation. In a pipe it asks in the middle of a call
// alone: at other times the next line is a message, or the answer to another question.
func (p *program) confirmInChat(ctx context.Context, q *login.Prompt) error {
	if !p.streams.InTerminal && !host.DuringCall(ctx) {
		return &login.SignInRequiredError{Resource: q.Resource, Issuer: q.Issuer, Scopes: q.Scopes, Why: q.Why}
	}
	agreed, err := host.AskSignIn(ctx, &host.SignIn{
		Resource: q.Resource, Issuer: q.Issuer, Scopes: q.Scopes, More: q.Why == login.ReasonStepUp, Previous: q.PreviousIssuer,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errNotNow, err)
	}
	if !agreed {
		return errNotNow
	}
	return nil
}

// An addressWanted passes on the address that somebody waits for. It may be used by many
// goroutines at once.
type addressWanted struct {
	mu sync.Mutex
	to chan string // has room for one; nil: nobody waits
}

// take gives an address to who waits, if somebody does.
func (w *addressWanted) take(address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.to == nil {
		return false
	}
	w.to <- address
	w.to = nil
	return true
}

// addressSent waits for an address in the place of a message.
func (p *program) addressSent(ctx context.Context) (string, error) {
	w, mine := &p.wantsAddress, make(chan string, 1)
	w.mu.Lock()
	w.to = mine
	w.mu.Unlock()
	select {
	case address := <-mine:
		return address, nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.to == mine {
		w.to = nil
	}
	return "", context.Cause(ctx)
}
