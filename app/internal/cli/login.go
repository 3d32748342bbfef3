package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/face"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/secrets"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
)

// loginFlags are the flags of the command login; nil in other commands.
type loginFlags struct {
	clientID   string
	secretFile string
	document   string
	issuer     string
	store      string
	scopes     []string
	allowHosts []string
	noBrowser  bool
	device     bool
	port       int
	host       string // of the redirect URI, if it is not the default

	client *knownClient // what clientID, secretFile and document make
}

func (p *program) loginCommand() *cobra.Command {
	flags := &loginFlags{}
	cmd := &cobra.Command{
		Use:   "login URL | NAME",
		Short: "Sign in to an MCP server",
		Long: `Sign in to the MCP server at a URL: find out which authorization server it
trusts, go there in the browser, and keep the tokens. Later commands with
--server URL use them and renew them. NAME is a server of your configuration;
what its entry says about signing in is used.

On a machine without a browser --device shows a code and an address to enter it
at, in a browser anywhere; the authorization server must offer that (RFC 8628).

Tokens are kept in the system's keyring, or where there is none in a file that
you alone can read; --store chooses, for good. The encrypted file takes its
passphrase from $PARLEY_PASSPHRASE, or asks.`,
		Example: `  parley login https://example.com/mcp
  parley login https://example.com/mcp --scope files:write
  parley login https://example.com/mcp --no-browser
  parley login https://example.com/mcp --device
  parley login tickets`,
		Args: kit.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.login = flags
			return p.signIn(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.clientID, "client-id", "", "`ID` of a client that was registered at the authorization server")
	f.StringVar(&flags.secretFile, "client-secret-file", "", "`FILE` with the secret of that client")
	f.StringVar(&flags.document, "client-metadata", "", "`URL` of a document about a client to be known by, with http://127.0.0.1/callback among its redirect_uris")
	f.StringArrayVar(&flags.scopes, "scope", nil, "`SCOPE` to ask for besides those the server wants; may be given several times")
	f.BoolVar(&flags.noBrowser, "no-browser", false, "only show the address to open, and read the one that the browser ends at")
	f.BoolVar(&flags.device, "device", false, "sign in with a browser on another device, which is shown a code to enter there")
	f.IntVar(&flags.port, "port", 0, "`PORT` on this machine that the browser comes back to (default: any)")
	f.StringVar(&flags.store, "store", "", "where to keep tokens: `KIND` is keyring, encrypted or file")
	f.StringVar(&flags.issuer, "issuer", "", "`URL` of the authorization server to choose, if the server names several")
	f.StringArrayVar(&flags.allowHosts, "allow-host", nil, "`HOST` or network with private addresses where authorization servers may be; may be given several times")
	return cmd
}

// check refuses flags that do not go together, and reads the secret.
func (f *loginFlags) check() (secret string, err error) {
	switch {
	case f.clientID != "" && f.document != "":
		return "", kit.Usagef("give --client-id or --client-metadata, not both")
	case f.secretFile != "" && f.clientID == "":
		return "", kit.Usagef("--client-secret-file goes with --client-id")
	case f.device && (f.noBrowser || f.port != 0):
		return "", kit.Usagef("--device needs no browser here; --no-browser and --port do not go with it")
	case f.port < 0 || f.port > 65535:
		return "", kit.Usagef("--port %d: there are 1 to 65535", f.port)
	case !slices.Contains([]string{"", secrets.Keyring, secrets.Encrypted, secrets.File}, f.store):
		return "", kit.Usagef("--store %q: the stores are keyring, encrypted and file", f.store)
	}
	if f.document != "" {
		u, err := oauth.CheckEndpoint(f.document)
		if err != nil || strings.Trim(u.Path, "/") == "" || u.Scheme != "https" && !oauth.LoopbackHost(u.Hostname()) {
			return "", kit.Usagef("--client-metadata %q: write the https URL of the document, with its path", shown(f.document))
		}
	}
	for _, scope := range f.scopes {
		if list, err := oauth.ParseScope(scope); err != nil || len(list) != 1 || list[0] != scope {
			return "", kit.Usagef("--scope %q: write one scope, and --scope once for each", scope)
		}
	}
	if f.secretFile == "" {
		return "", nil
	}
	return kit.ReadSecret("--client-secret-file", f.secretFile)
}

// signIn signs in to the server at a URL: it connects to it, and the refusal
// says what it wants. The connection also shows whether it likes the tokens.
func (p *program) signIn(ctx context.Context, address string) error {
	if len(p.serverFlags)+len(p.headers) > 0 {
		return kit.Usagef("login takes the server's URL as its argument; --server and --header are for commands that use one")
	}
	if !kit.IsURL(address) {
		return p.signInEntry(ctx, address)
	}
	u, err := signInURL(address)
	if err != nil {
		return err
	}
	secret, err := p.login.check()
	if err != nil {
		return err
	}
	if id := cmp.Or(p.login.clientID, p.login.document); id != "" {
		if err := p.known(ctx, u, id, secret); err != nil {
			return err
		}
	}
	s := p.signIns(ctx)
	defer p.endSignIns()
	if s.err != nil {
		return s.err
	}
	p.serverFlags = []string{address}
	return p.signInAt(ctx, s, u, shown(address))
}

// signInAt signs in to the server at a URL, which a command of one server would reach.
func (p *program) signInAt(ctx context.Context, s *signIns, u *url.URL, address string) error {
	if err := p.renewFor(ctx, s, u); err != nil {
		return err
	}
	reached := p.withOne(ctx, func(*client.Client) error { return nil })
	if reached == nil {
		reached = p.moreScopes(ctx, s, u)
	}
	now, err := s.at(ctx, u)
	if err != nil || reached != nil {
		return errors.Join(err, reached)
	}
	if now == nil {
		return p.Println(host.EscapeLine(address) + " needs no sign-in")
	}
	if err := p.keep(ctx, s); err != nil {
		return err
	}
	return p.Println(signedInAs(now, s.kind))
}

// known makes the client of the flags: it is for one authorization server.
func (p *program) known(ctx context.Context, u *url.URL, id, secret string) error {
	issuer := p.login.issuer
	if issuer == "" {
		c := login.New(&login.Options{Fetch: oauth.NewFetcher(&oauth.FetchOptions{AllowHosts: p.login.allowHosts}), Logger: p.Logger()})
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
	p.login.client = &knownClient{Issuer: issuer, ID: id, Secret: secret, Document: p.login.document != ""}
	return nil
}

// renewFor signs in anew if the person wants to be known by another client, or
// at another authorization server, than the tokens are from.
func (p *program) renewFor(ctx context.Context, s *signIns, u *url.URL) error {
	now, err := s.at(ctx, u)
	if err != nil || now == nil {
		return err
	}
	other := p.login.client != nil && p.login.client.ID != now.ClientID || p.login.issuer != "" && !oauth.SameIssuer(p.login.issuer, now.Issuer)
	if !other {
		return nil
	}
	_, err = s.SignIn(ctx, u.String(), &login.SignInOptions{Scopes: p.login.scopes, Force: true})
	return err
}

// moreScopes asks for the scopes of the flags, if the tokens that there were
// before lack some.
func (p *program) moreScopes(ctx context.Context, s *signIns, u *url.URL) error {
	if len(p.login.scopes) == 0 {
		return nil
	}
	_, err := s.SignIn(ctx, u.String(), &login.SignInOptions{Scopes: p.login.scopes})
	return err
}

// at returns what is stored for the server at a URL, or nil.
func (s *signIns) at(ctx context.Context, u *url.URL) (*login.Status, error) {
	all, err := s.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the store of tokens: %w", err)
	}
	var best *login.Status
	for i := range all {
		r := &all[i]
		if r.Current && kit.Covers(r.Resource, u) && (best == nil || len(r.Resource) > len(best.Resource)) {
			best = r
		}
	}
	return best, nil
}

// keep remembers how the person signed in, for later commands.
func (p *program) keep(ctx context.Context, s *signIns) error {
	if made := p.login.client; made != nil {
		if err := changeClients(ctx, s.store, func(list []knownClient) []knownClient {
			list = slices.DeleteFunc(list, func(c knownClient) bool { return oauth.SameIssuer(c.Issuer, made.Issuer) })
			return append(list, *made)
		}); err != nil {
			return err
		}
	}
	if p.login.store == "" && len(p.login.allowHosts) == 0 {
		return nil
	}
	set, err := readSettings()
	if err != nil {
		return err
	}
	set.Store = cmp.Or(p.login.store, set.Store)
	set.AllowHosts = append(set.AllowHosts, p.login.allowHosts...)
	return set.remember()
}

func signedInAs(s *login.Status, kind string) string {
	text := fmt.Sprintf("signed in to %s as client %s", host.EscapeLine(s.Resource), host.EscapeLine(s.ClientID))
	if len(s.Scopes) > 0 {
		text += ", scopes " + host.EscapeLine(oauth.JoinScope(s.Scopes))
	}
	return text + "; tokens are kept in " + kind
}

func (p *program) logoutCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "logout [URL | NAME]",
		Short: "Sign out of an MCP server",
		Long: `Have the tokens for the server at a URL revoked, and forget them, or those of a
server of your configuration. Without either, those of the only server that you
are signed in to, or with --all of all.`,
		Example: `  parley logout https://example.com/mcp
  parley logout --all`,
		Args: kit.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.signOut(cmd.Context(), args, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "sign out of all servers")
	return cmd
}

func (p *program) signOut(ctx context.Context, args []string, all bool) error {
	if all && len(args) > 0 {
		return kit.Usagef("give a URL or --all, not both")
	}
	if p.signIns(ctx).err != nil {
		return p.signedIn.err
	}
	defer p.endSignIns()
	list, err := p.signedInAt(ctx, args)
	if err != nil {
		return err
	}
	switch {
	case len(list) == 0 && len(args) > 0:
		return p.Println("you are not signed in to " + host.EscapeLine(shown(args[0])))
	case len(list) == 0:
		return p.Println("you are not signed in to any server")
	case len(list) > 1 && !all && len(args) == 0:
		var names []string
		for _, at := range list {
			names = append(names, at.resource)
		}
		return kit.Usagef("you are signed in to %s; name one, or give --all", host.EscapeLine(strings.Join(names, " and ")))
	}
	var trouble []error
	for _, at := range list {
		if err := at.signIns.SignOut(ctx, at.resource); err != nil {
			trouble = append(trouble, fmt.Errorf("the tokens for %s are forgotten here, but perhaps not revoked: %w", at.resource, err))
			continue
		}
		trouble = append(trouble, p.Println("signed out of "+host.EscapeLine(at.resource)))
	}
	return errors.Join(append(trouble, p.signedIn.forgetClients(ctx))...)
}

// A signedInResource is what the person is signed in to, and by what.
type signedInResource struct {
	signIns  *signIns
	resource string
}

// signedInAt lists what the person is signed in to: at the URL or entry that they named,
// or all.
func (p *program) signedInAt(ctx context.Context, named []string) ([]signedInResource, error) {
	var list []signedInResource
	if len(named) > 0 {
		from, u, err := p.signInsOf(ctx, named[0])
		if err != nil {
			return nil, err
		}
		for _, s := range from {
			at, err := s.at(ctx, u)
			if err != nil {
				return nil, err
			}
			if at != nil {
				list = append(list, signedInResource{s, at.Resource})
			}
		}
		return list, nil
	}
	from, err := p.allSignIns(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range from {
		stored, err := s.Status(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the store of tokens: %w", err)
		}
		for _, r := range stored {
			if at := (signedInResource{s, r.Resource}); !slices.Contains(list, at) {
				list = append(list, at)
			}
		}
	}
	return list, nil
}

// signInsOf are those for a URL, by whatever client, or for the name of an entry.
func (p *program) signInsOf(ctx context.Context, target string) ([]*signIns, *url.URL, error) {
	if kit.IsURL(target) {
		u, err := signInURL(target)
		if err != nil {
			return nil, nil, err
		}
		all, err := p.allSignIns(ctx)
		return all, u, err
	}
	entry, err := p.remoteEntry(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	u, err := signInURL(entry.URL)
	if err != nil {
		return nil, nil, err
	}
	s, err := p.entrySignIns(ctx, entry)
	return []*signIns{s}, u, err
}

// forgetClients removes the clients of authorization servers that are used for
// nothing any more.
func (s *signIns) forgetClients(ctx context.Context) error {
	left, err := s.Status(ctx)
	if err != nil {
		return fmt.Errorf("reading the store of tokens: %w", err)
	}
	return changeClients(ctx, s.store, func(list []knownClient) []knownClient {
		return slices.DeleteFunc(list, func(c knownClient) bool {
			return !slices.ContainsFunc(left, func(r login.Status) bool { return oauth.SameIssuer(r.Issuer, c.Issuer) })
		})
	})
}

// openSignIns are those of flags and of entries that were made in this run.
func (p *program) openSignIns() []*signIns {
	list := slices.Collect(maps.Values(p.entrySignedIn))
	if p.signedIn != nil {
		list = append(list, p.signedIn)
	}
	return list
}

// A shownHost is a host as faces show it: its status is without secrets, and a person who starts a server
// again is asked again to sign in.
type shownHost struct {
	face.Host
	p       *program
	signIns []*signIns
}

// Status returns how each server is.
func (h shownHost) Status() []host.ServerStatus {
	list := h.Host.Status()
	for i := range list {
		list[i].Origin = h.p.Masked(list[i].Origin) // a command line may have some
		for _, err := range []*error{&list[i].Err, &list[i].SkillsErr} {
			if *err == nil {
				continue
			}
			if text := h.p.Masked((*err).Error()); text != (*err).Error() {
				*err = &maskedError{*err, text}
			}
		}
		list[i].Problems = h.p.MaskedProblems(list[i].Problems)
	}
	return list
}

// Retry starts a server again.
func (h shownHost) Retry(server string) error {
	for _, s := range h.signIns {
		s.AskAgain()
	}
	return h.Host.Retry(server)
}

// endSignIns ends what is under way on behalf of the person.
func (p *program) endSignIns() {
	for _, s := range p.openSignIns() {
		if err := s.Close(); err != nil {
			p.Logger().Warn("ending the sign-ins", "error", err)
		}
	}
}
