package use

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/secrets"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
)

// loginFlags are the flags of the command login.
type loginFlags struct {
	connect.LoginOptions

	clientID   string
	secretFile string
	document   string
}

func (g *group) loginCommand() *cobra.Command {
	flags := &loginFlags{}
	cmd := &cobra.Command{
		Use:   "login URL | NAME",
		Short: "Sign in to an MCP server",
		Long: `Sign in to the MCP server at a URL: find the authorization server it trusts,
open that server's page in the browser, and store the tokens. Later commands
with --server URL use and renew them. NAME is a server in your configuration;
Parley uses the sign-in settings of its entry.

On a machine without a browser, use --device: it shows a code and the address
where you enter it, in a browser on any device. The authorization server must
support this (RFC 8628).

Parley stores tokens in the system's keyring, or if there is none in a file that
only you can read. --store chooses the store permanently. For the encrypted
file, Parley reads the passphrase from $PARLEY_PASSPHRASE, or asks for it.`,
		Example: `  parley login https://example.com/mcp
  parley login https://example.com/mcp --scope files:write
  parley login https://example.com/mcp --no-browser
  parley login https://example.com/mcp --device
  parley login tickets`,
		Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			g.SignIns.Login = &flags.LoginOptions
			return g.signIn(cmd.Context(), flags, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.clientID, "client-id", "", "`ID` of a client registered with the authorization server")
	f.StringVar(&flags.secretFile, "client-secret-file", "", "`FILE` with the secret of that client")
	f.StringVar(&flags.document, "client-metadata", "", "`URL` of a client ID metadata document whose redirect_uris include http://127.0.0.1/callback")
	f.StringArrayVar(&flags.Scopes, "scope", nil, "`SCOPE` to request in addition to those the server requires (repeatable)")
	f.BoolVar(&flags.NoBrowser, "no-browser", false, "show the address to open, and read the address where the browser ends up")
	f.BoolVar(&flags.Device, "device", false, "sign in with a code in a browser on another device")
	f.IntVar(&flags.Port, "port", 0, "local `PORT` that the browser returns to (default: any)")
	f.StringVar(&flags.Store, "store", "", "`KIND` of token store: keyring, encrypted or file")
	f.StringVar(&flags.Issuer, "issuer", "", "`URL` of the authorization server to use, if the server names several")
	f.StringArrayVar(&flags.AllowHosts, "allow-host", nil, "`HOST` or network with private addresses where authorization servers can be (repeatable)")
	return cmd
}

// check rejects flags that cannot be combined, and reads the secret.
func (f *loginFlags) check() (secret string, err error) {
	switch {
	case f.clientID != "" && f.document != "":
		return "", kit.Usagef("--client-id and --client-metadata cannot be used together")
	case f.secretFile != "" && f.clientID == "":
		return "", kit.Usagef("--client-secret-file requires --client-id")
	case f.Device && (f.NoBrowser || f.Port != 0):
		return "", kit.Usagef("--device cannot be used with --no-browser or --port: it needs no browser on this machine")
	case f.Port < 0 || f.Port > 65535:
		return "", kit.Usagef("--port %d: must be 1 to 65535", f.Port)
	case !slices.Contains([]string{"", secrets.Keyring, secrets.Encrypted, secrets.File}, f.Store):
		return "", kit.Usagef("--store %q: must be keyring, encrypted or file", f.Store)
	}
	if f.document != "" {
		u, err := oauth.CheckEndpoint(f.document)
		if err != nil || strings.Trim(u.Path, "/") == "" || u.Scheme != "https" && !oauth.LoopbackHost(u.Hostname()) {
			return "", kit.Usagef("--client-metadata %q: must be the https URL of the document, with its path", connect.Shown(f.document))
		}
	}
	for _, scope := range f.Scopes {
		if list, err := oauth.ParseScope(scope); err != nil || len(list) != 1 || list[0] != scope {
			return "", kit.Usagef("--scope %q: must be one scope; repeat --scope for each", scope)
		}
	}
	if f.secretFile == "" {
		return "", nil
	}
	return kit.ReadSecret("--client-secret-file", f.secretFile)
}

// signIn signs in to the server at a URL. It connects to the server, whose rejection
// names its requirements. The connection also shows whether the server accepts the tokens.
func (g *group) signIn(ctx context.Context, flags *loginFlags, address string) error {
	if !kit.IsURL(address) {
		return g.signInEntry(ctx, flags, address)
	}
	u, err := connect.ServerURL(address)
	if err != nil {
		return err
	}
	secret, err := flags.check()
	if err != nil {
		return err
	}
	if id := cmp.Or(flags.clientID, flags.document); id != "" {
		if err := g.known(ctx, flags, u, id, secret); err != nil {
			return err
		}
	}
	s := g.SignIns.Base(ctx)
	defer g.SignIns.Close()
	if s.Err != nil {
		return s.Err
	}
	g.Named = []string{address}
	return g.signInAt(ctx, flags, s, u, connect.Shown(address))
}

// signInAt signs in to the server at a URL, which a command of one server would reach.
func (g *group) signInAt(ctx context.Context, flags *loginFlags, s *connect.Tokens, u *url.URL, address string) error {
	if err := g.renewFor(ctx, flags, s, u); err != nil {
		return err
	}
	reached := g.WithOne(ctx, func(*client.Client) error { return nil })
	if reached == nil {
		reached = g.moreScopes(ctx, flags, s, u)
	}
	now, err := s.At(ctx, u)
	if err != nil || reached != nil {
		return errors.Join(err, reached)
	}
	if now == nil {
		return g.Println(host.EscapeLine(address) + " does not require sign-in")
	}
	if err := g.SignIns.Remember(ctx, s); err != nil {
		return err
	}
	return g.Println(signedInAs(now, s.Kind))
}

// known returns the client that the flags describe, for one authorization server.
func (g *group) known(ctx context.Context, flags *loginFlags, u *url.URL, id, secret string) error {
	issuer := flags.Issuer
	if issuer == "" {
		c := login.New(&login.Options{Fetch: oauth.NewFetcher(&oauth.FetchOptions{AllowHosts: flags.AllowHosts}), Logger: g.Logger()})
		defer func() { _ = c.Close() }() // nothing of it is kept
		issuers, err := c.Issuers(ctx, u.String())
		if err != nil {
			return fmt.Errorf("finding the authorization server: %w", err)
		}
		if len(issuers) != 1 {
			return kit.Usagef("the server names several authorization servers; choose with --issuer: %s", host.EscapeLine(strings.Join(issuers, ", ")))
		}
		issuer = issuers[0]
	}
	flags.Client = &connect.KnownClient{Issuer: issuer, ID: id, Secret: secret, Document: flags.document != ""}
	return nil
}

// renewFor signs in again if the user chose another client or another authorization server than
// the one that issued the tokens.
func (g *group) renewFor(ctx context.Context, flags *loginFlags, s *connect.Tokens, u *url.URL) error {
	now, err := s.At(ctx, u)
	if err != nil || now == nil {
		return err
	}
	other := flags.Client != nil && flags.Client.ID != now.ClientID || flags.Issuer != "" && !oauth.SameIssuer(flags.Issuer, now.Issuer)
	if !other {
		return nil
	}
	_, err = s.SignIn(ctx, u.String(), &login.SignInOptions{Scopes: flags.Scopes, Force: true})
	return err
}

// moreScopes requests the scopes of the flags if the existing tokens lack some.
func (g *group) moreScopes(ctx context.Context, flags *loginFlags, s *connect.Tokens, u *url.URL) error {
	if len(flags.Scopes) == 0 {
		return nil
	}
	_, err := s.SignIn(ctx, u.String(), &login.SignInOptions{Scopes: flags.Scopes})
	return err
}

func signedInAs(s *login.Status, kind string) string {
	text := fmt.Sprintf("signed in to %s as client %s", host.EscapeLine(s.Resource), host.EscapeLine(s.ClientID))
	if len(s.Scopes) > 0 {
		text += ", scopes " + host.EscapeLine(oauth.JoinScope(s.Scopes))
	}
	return text + "; tokens are stored in " + kind
}

func (g *group) logoutCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "logout [URL | NAME]",
		Short: "Sign out of an MCP server",
		Long: `Revoke and delete the tokens for the server at a URL or for a server in your
configuration. Without an argument, sign out of the only server you are signed
in to; with --all, of all servers.`,
		Example: `  parley logout https://example.com/mcp
  parley logout --all`,
		Args: kit.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.signOut(cmd.Context(), args, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "sign out of all servers")
	return cmd
}

func (g *group) signOut(ctx context.Context, args []string, all bool) error {
	if all && len(args) > 0 {
		return kit.Usagef("a URL or NAME cannot be used together with --all")
	}
	if g.SignIns.Base(ctx).Err != nil {
		return g.SignIns.Base(ctx).Err
	}
	defer g.SignIns.Close()
	list, err := g.signedInAt(ctx, args)
	if err != nil {
		return err
	}
	switch {
	case len(list) == 0 && len(args) > 0:
		return g.Println("you are not signed in to " + host.EscapeLine(connect.Shown(args[0])))
	case len(list) == 0:
		return g.Println("you are not signed in to any server")
	case len(list) > 1 && !all && len(args) == 0:
		var names []string
		for _, at := range list {
			names = append(names, at.resource)
		}
		return kit.Usagef("you are signed in to %s; name one, or use --all", host.EscapeLine(strings.Join(names, " and ")))
	}
	var trouble []error
	for _, at := range list {
		if err := at.signIns.SignOut(ctx, at.resource); err != nil {
			trouble = append(trouble, fmt.Errorf("the tokens for %s are deleted here, but might not be revoked: %w", at.resource, err))
			continue
		}
		trouble = append(trouble, g.Println("signed out of "+host.EscapeLine(at.resource)))
	}
	return errors.Join(append(trouble, g.SignIns.Base(ctx).ForgetClients(ctx))...)
}

// A signedInResource is a resource the user is signed in to, with the sign-ins for it.
type signedInResource struct {
	signIns  *connect.Tokens
	resource string
}

// signedInAt lists the resources the user is signed in to: those of the URL or entry they named,
// or all.
func (g *group) signedInAt(ctx context.Context, named []string) ([]signedInResource, error) {
	var list []signedInResource
	if len(named) > 0 {
		from, u, err := g.signInsOf(ctx, named[0])
		if err != nil {
			return nil, err
		}
		for _, s := range from {
			at, err := s.At(ctx, u)
			if err != nil {
				return nil, err
			}
			if at != nil {
				list = append(list, signedInResource{s, at.Resource})
			}
		}
		return list, nil
	}
	from, err := g.SignIns.All(ctx, g.ClientEntries)
	if err != nil {
		return nil, err
	}
	for _, s := range from {
		stored, err := s.Status(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the token store: %w", err)
		}
		for _, r := range stored {
			if at := (signedInResource{s, r.Resource}); !slices.Contains(list, at) {
				list = append(list, at)
			}
		}
	}
	return list, nil
}

// signInsOf returns the sign-ins for a URL, with any client, or for a server entry.
func (g *group) signInsOf(ctx context.Context, target string) ([]*connect.Tokens, *url.URL, error) {
	if kit.IsURL(target) {
		u, err := connect.ServerURL(target)
		if err != nil {
			return nil, nil, err
		}
		all, err := g.SignIns.All(ctx, g.ClientEntries)
		return all, u, err
	}
	entry, err := g.RemoteEntry(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	u, err := connect.ServerURL(entry.URL)
	if err != nil {
		return nil, nil, err
	}
	s, err := g.SignIns.Entry(ctx, entry)
	return []*connect.Tokens{s}, u, err
}

// signInEntry signs in to a server in the configuration, with the settings of its entry.
func (g *group) signInEntry(ctx context.Context, flags *loginFlags, name string) error {
	if _, err := flags.check(); err != nil {
		return err
	}
	if flags.clientID != "" || flags.document != "" {
		return kit.Usagef("--client-id and --client-metadata require a URL; set the client for %s in its entry, as oauth.clientId", name)
	}
	defer g.SignIns.Close()
	entry, err := g.RemoteEntry(ctx, name)
	if err != nil {
		return err
	}
	u, err := connect.ServerURL(entry.URL)
	if err != nil {
		return err
	}
	s, err := g.SignIns.Entry(ctx, entry)
	if err != nil {
		return fmt.Errorf("%s: %w", entry.Source, err)
	}
	if s.Err != nil {
		return s.Err
	}
	server, err := g.Startable(ctx, entry)
	if err != nil {
		return err
	}
	g.Given = []host.Server{server}
	return g.signInAt(ctx, flags, s, u, connect.Shown(entry.URL))
}
