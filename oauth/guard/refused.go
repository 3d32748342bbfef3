package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// A checkError says which check a token failed.
type checkError struct {
	check string
	error
}

func (e *checkError) Unwrap() error { return e.error }

// failed is the error of a token that failed a check.
func failed(check, format string, args ...any) error {
	return &checkError{check, fmt.Errorf(format, args...)}
}

// jwtChecks are the checks of package jwt by the error of a token that fails.
var jwtChecks = []struct {
	err   error
	check string
}{
	{jwt.ErrMalformed, "form"},
	{jwt.ErrType, "type"},
	{jwt.ErrAlgorithm, "algorithm"},
	{jwt.ErrNoKey, "signature"},
	{jwt.ErrSignature, "signature"},
	{jwt.ErrIssuer, "issuer"},
	{jwt.ErrAudience, "audience"},
	{jwt.ErrExpired, "expiry"},
	{jwt.ErrNotYet, "expiry"},
}

// checkOf names the check that a token failed.
func checkOf(err error) string {
	if e, ok := errors.AsType[*checkError](err); ok {
		return e.check
	}
	for _, c := range jwtChecks {
		if errors.Is(err, c.err) {
			return c.check
		}
	}
	return "verifier"
}

// logRefused logs which check a token failed, and why, in one line.
func (g *Guard) logRefused(ctx context.Context, check, reason string) {
	g.log.InfoContext(ctx, "token refused", "check", check, "reason", reason)
}

// quoted lists values of a token, or of the configuration, for the log: bounded, since strangers send
// any number of them.
func quoted(values []string) string {
	const most = 8
	var out []string
	for _, v := range values[:min(len(values), most)] {
		out = append(out, fmt.Sprintf("%.200q", v))
	}
	if len(values) > most {
		out = append(out, "…")
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, ", ")
}
