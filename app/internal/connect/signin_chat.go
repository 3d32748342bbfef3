package connect

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth/login"
)

// confirmInChat asks the person in the conversation. In a pipe it asks in the middle of a call
// alone: at other times the next line is a message, or the answer to another question.
func (in *SignIns) confirmInChat(ctx context.Context, q *login.Prompt) error {
	required := &login.SignInRequiredError{Resource: q.Resource, Issuer: q.Issuer, Scopes: q.Scopes, Why: q.Why}
	if !in.Streams.InTerminal && !host.DuringCall(ctx) {
		return required
	}
	agreed, err := host.AskSignIn(ctx, &host.SignIn{
		Resource: q.Resource, Issuer: q.Issuer, Scopes: q.Scopes, More: q.Why == login.ReasonStepUp, Previous: q.PreviousIssuer,
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("no answer to the sign-in question: %w", err)
	case err != nil: // nobody has refused: another session may be asked
		return fmt.Errorf("%w (cannot ask the user: %w)", required, err)
	case !agreed:
		return errNotNow
	}
	return nil
}

// An addressWanted passes on addresses that sign-ins wait for, each to the one that has waited
// longest: one that refuses an address waits again, after the others. It may be used by many
// goroutines at once.
type addressWanted struct {
	mu sync.Mutex
	to []chan string // each has room for one
}

// take gives an address to the sign-in that has waited longest, if one does.
func (w *addressWanted) take(address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.to) == 0 {
		return false
	}
	w.to[0] <- address
	w.to = w.to[1:]
	return true
}

// addressSent waits for an address in the place of a message.
func (in *SignIns) addressSent(ctx context.Context) (string, error) {
	w, mine := &in.wanted, make(chan string, 1)
	w.mu.Lock()
	w.to = append(w.to, mine)
	w.mu.Unlock()
	select {
	case address := <-mine:
		return address, nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = slices.DeleteFunc(w.to, func(c chan string) bool { return c == mine })
	return "", context.Cause(ctx)
}

// TakeAddress gives a line that the user typed on a screen to the sign-in that has waited longest for an
// address, and reports whether one took it.
func (in *SignIns) TakeAddress(line string) bool {
	taken := isAddress(line) && in.wanted.take(line)
	if taken {
		in.Note("The address was used for the sign-in, not sent as a message.")
	}
	return taken
}
