package tester

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/tester/inspect"
	"github.com/parley-mcp/parley/host"
)

// inspectAuth are the flags of the command inspect about sign-ins that are stored.
type inspectAuth struct {
	stored, only, relogin, keep, list, handoff bool
	wait                                       float64 // seconds
}

func (f *inspectAuth) add(set *pflag.FlagSet) {
	set.BoolVar(&f.stored, "use-stored-auth", false, "use the stored sign-in for the URL, and fail if there is none")
	set.BoolVar(&f.only, "stored-auth-only", false, "never ask for a sign-in: use a stored one, or fail")
	set.BoolVar(&f.relogin, "relogin", false, "first revoke and delete the stored sign-in for the URL")
	set.BoolVar(&f.keep, "no-revoke", false, "with --relogin, delete the stored sign-in without revoking it")
	set.Float64Var(&f.wait, "wait-for-auth", 0, "wait at most this many `SECONDS` for a sign-in to the URL by 'parley login', and use it")
	set.BoolVar(&f.list, "list-stored-auth", false, "list the URLs with stored sign-ins")
	set.BoolVar(&f.handoff, "print-handoff", false, "print the commands that sign in to the URL, for a user or another machine")
}

// check refuses flags that do not go together.
func (f *inspectAuth) check(set *pflag.FlagSet) error {
	switch {
	case f.relogin && (f.stored || f.only || f.list || f.handoff || set.Changed("wait-for-auth")):
		return kit.Usagef("--relogin cannot be used with other stored sign-in flags, except --no-revoke")
	case f.keep && !f.relogin:
		return kit.Usagef("--no-revoke requires --relogin")
	case set.Changed("wait-for-auth") && !(f.wait > 0 && f.wait < 1e6):
		return kit.Usagef("--wait-for-auth: must be a number of seconds")
	}
	return nil
}

// alone is what the flags say that needs no connection; done is false if they say none.
func (f *inspectAuth) alone(ctx context.Context, p *inspector, server connect.Target) (done bool, err error) {
	switch {
	case f.list:
		return true, p.listStoredAuth(ctx)
	case f.handoff:
		u, err := urlOf(server, "--print-handoff")
		if err != nil {
			return true, err
		}
		address := connect.Origin(u)
		return true, internally(p.PrintJSON(struct {
			ServerURL string `json:"serverUrl"`
			SignIn    string `json:"signInCmd"`
			Elsewhere string `json:"signInElsewhereCmd"`
			Wait      string `json:"waitCmd"`
		}{
			address, "parley login " + address, "parley login --no-browser " + address,
			"parley inspect --wait-for-auth 120 --method tools/list " + address,
		}))
	}
	return false, nil
}

// urlOf is the URL of the server, for flags that need one.
func urlOf(server connect.Target, flag string) (*url.URL, error) {
	if server.Command || len(server.Words) != 1 || !kit.IsURL(server.Words[0]) {
		return nil, kit.Usagef("%s requires the URL of a server", flag)
	}
	u, err := url.Parse(server.Words[0])
	if err != nil {
		return nil, kit.Usagef("%w", connect.NoURL(server.Words[0], err))
	}
	return u, nil
}

// listStoredAuth lists where there are tokens for.
func (in *inspector) listStoredAuth(ctx context.Context) error {
	s := in.SignIns.Base(ctx)
	if s.Err != nil {
		return s.Err
	}
	list, err := s.Status(ctx)
	if err != nil {
		return fmt.Errorf("reading the token store: %w", err)
	}
	urls := []string{}
	for i := range list {
		if list[i].Current {
			urls = append(urls, list[i].Resource)
		}
	}
	return internally(in.PrintJSON(struct {
		Store string   `json:"store"`
		URLs  []string `json:"storedServerUrls"`
	}{s.Kind, urls}))
}

// prepare does what the flags say before a connection is made.
func (f *inspectAuth) prepare(ctx context.Context, p *inspector, server connect.Target) error {
	p.SignIns.StoredOnly = f.only || f.stored || f.wait > 0
	flag := ""
	switch {
	case f.wait > 0:
		flag = "--wait-for-auth"
	case f.stored:
		flag = "--use-stored-auth"
	case f.relogin:
		flag = "--relogin"
	default:
		return nil
	}
	u, err := urlOf(server, flag)
	if err != nil {
		return err
	}
	s := p.SignIns.Base(ctx)
	if s.Err != nil {
		return s.Err
	}
	if f.relogin {
		stored, err := s.At(ctx, u)
		switch {
		case err != nil || stored == nil:
			return err
		case f.keep:
			return s.Forget(ctx, stored.Resource)
		}
		return s.SignOut(ctx, stored.Resource)
	}
	return p.waitForAuth(ctx, s, u, time.Duration(f.wait*float64(time.Second)))
}

// waitForAuth waits until there is a sign-in for a URL. Without a time it does not wait.
func (in *inspector) waitForAuth(ctx context.Context, s *connect.Tokens, u *url.URL, limit time.Duration) error {
	missing := &inspect.Error{
		Exit: inspect.ExitAuth, Code: "no_stored_token", URL: connect.Origin(u),
		Message: fmt.Sprintf("no sign-in is stored for %s; run 'parley login %s' first", host.EscapeLine(connect.Origin(u)), host.EscapeLine(connect.Origin(u))),
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		stored, err := s.At(ctx, u)
		if err != nil || stored != nil {
			return err
		}
		if limit <= 0 {
			return missing
		}
		select {
		case <-again.C:
		case <-end.C:
			missing.Code = "auth_wait_timeout"
			return missing
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
