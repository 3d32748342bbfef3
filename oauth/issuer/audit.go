package issuer

import (
	"context"
	"log/slog"
)

// audit tells Options.Audit what happened, or the logger. Events hold
// identifiers and fixed words alone, never a code, token, secret or handle.
func (s *Server) audit(ctx context.Context, e Event) {
	if s.opts.Audit != nil {
		s.opts.Audit(ctx, e)
		return
	}
	attrs := []slog.Attr{slog.String("outcome", e.Outcome)}
	for _, a := range []struct{ name, value string }{
		{"client", e.Client},
		{"subject", e.Subject},
		{"grant", e.Grant},
		{"resource", e.Resource},
		{"grant_type", e.GrantType},
		{"remote", e.Remote},
		{"reason", e.Reason},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	if len(e.Scopes) > 0 {
		attrs = append(attrs, slog.Any("scopes", e.Scopes))
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, e.Name, attrs...)
}
