package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/policy"
)

// system is the host's instruction with those of trusted servers, marked. What a
// server says anew is used only after the person has agreed.
func (s *Session) system(ctx context.Context) (string, error) {
	var b strings.Builder
	b.WriteString(s.host.opts.System)
	for _, in := range s.host.instructions() {
		ok, err := s.agreed(ctx, &in)
		if err != nil {
			return "", err
		}
		if ok {
			fmt.Fprintf(&b, "\n\nInstructions of server %s:\n%s", in.server, in.text)
		}
	}
	return b.String(), nil
}

// serverInstructions are what a server says to the model.
type serverInstructions struct{ server, pinServer, text string }

// instructions are those of the servers that are trusted and connected, bounded.
func (h *Host) instructions() []serverInstructions {
	set := &h.servers
	set.mu.Lock()
	defer set.mu.Unlock()
	var list []serverInstructions
	for _, s := range set.list {
		if !s.spec.Trusted || s.client == nil {
			continue
		}
		if text := s.client.Instructions(); text != "" {
			text, _ = cut(text, h.opts.MaxInstructions)
			list = append(list, serverInstructions{s.spec.Name, s.spec.pinServer(), text})
		}
	}
	return list
}

// agreed reports whether the model may read a server's instructions: the ones that
// were first seen, since the person trusts the server, or those that they agreed to
// since. A refusal holds for the session.
func (s *Session) agreed(ctx context.Context, in *serverInstructions) (bool, error) {
	def := &Definition{Instructions: in.text}
	digest := def.Digest()
	key := PinKey{Server: in.pinServer}
	pin, err := s.host.opts.Store.Pin(ctx, key)
	if err != nil {
		return false, fmt.Errorf("reading what was agreed to: %w", err)
	}
	if pin != nil && pin.Digest == digest {
		return true, nil
	}
	if pin != nil {
		s.mu.Lock()
		refused := s.refusedText[digest]
		s.mu.Unlock()
		if refused {
			return false, nil
		}
		var changes []Change
		old := new(Definition)
		if old.UnmarshalJSON(pin.Definition) == nil {
			changes = Diff(old, def)
		}
		a, err := s.ask(ctx, &Question{
			Kind: QuestionChange, Server: in.server, Origin: s.host.origin(in.server), Changes: changes,
			Why: "the server has changed the instructions that the model is given, since you agreed to them",
		}, nil, nil)
		if err != nil && !errors.Is(err, errUnattended) {
			return false, err
		}
		if err != nil || a.Action != Approve {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.refusedText == nil {
				s.refusedText = make(map[string]bool)
			}
			s.refusedText[digest] = true
			return false, nil
		}
	}
	err = s.keepPin(ctx, &AuditEntry{Kind: policy.KindTool, Server: in.server}, key, digest, def.MarshalJSON)
	return err == nil, err
}
