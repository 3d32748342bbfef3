package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/store/records"
	"github.com/parley-mcp/parley/app/userauth"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/transport/web"
)

// issuerFlags are the flags of the command auth serve.
type issuerFlags struct {
	http     string
	issuer   string
	database string

	resources    []string
	clients      []string
	registration bool
	autoApprove  string
	lifetime     time.Duration
	auditFile    string
	proxies      []string

	upstream, upstreamClient, upstreamSecret string

	observeFlags
}

// databaseName is the file with the records of an authorization server.
const databaseName = "issuer.db"

func (p *program) issuerCommand() *cobra.Command {
	flags := &issuerFlags{}
	cmd := &cobra.Command{
		Use:   "serve --http ADDRESS",
		Short: "Run an authorization server for MCP servers",
		Long: `Run an authorization server: people sign in there, and clients get tokens for
the MCP servers that --resource names. People are its own users, which 'parley
auth user add' adds, or those of another provider (--upstream).

Clients are those of --client, clients with a metadata document, and with
--allow-registration any that registers itself. Its records are an SQLite file,
or with --database postgres://… a PostgreSQL database, which several processes
may share.

With --metrics a page for Prometheus shows requests by endpoint and status, how
long they take, and how people sign in, without their names, at an address of its
own. With --otlp traces of requests go to a collector of OpenTelemetry, as with
'parley serve'.

It speaks no TLS. For other machines put a proxy that does in front, on this
machine or in a network of its own; --issuer is the URL that it shows, and
--trusted-proxy where it is.`,
		Example: `  parley auth user add ada
  parley auth serve --http 127.0.0.1:9000 --allow-registration \
    --resource http://127.0.0.1:8080/mcp=everything:read,everything:write
  parley auth serve --http :9000 --issuer https://login.example \
    --trusted-proxy 127.0.0.1 --client cli=http://127.0.0.1/callback \
    --resource https://mcp.example/mcp=files:read`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.serveIssuer(cmd.Context(), cmd.Flags(), flags)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.http, "http", "", "`ADDRESS` to serve at, such as 127.0.0.1:9000")
	f.StringVar(&flags.issuer, "issuer", "", "public `URL` of the server, as proxies in front show it (default: http://ADDRESS, on this machine)")
	databaseFlag(f, &flags.database)
	f.StringArrayVar(&flags.resources, "resource", nil, "`URI=SCOPE,SCOPE...` of an MCP server and its scopes; may be given several times")
	f.StringArrayVar(&flags.clients, "client", nil, "`ID=REDIRECT_URI` of a client; several times, with the same ID for several URIs")
	f.BoolVar(&flags.registration, "allow-registration", false, "let clients register themselves")
	f.StringVar(&flags.autoApprove, "auto-approve", "", "for tests: whoever comes is `USER` and agrees; on this machine alone")
	f.DurationVar(&flags.lifetime, "access-lifetime", 0, "`TIME` that access tokens last, such as 5m (default 10m)")
	f.StringVar(&flags.auditFile, "audit-file", "", "`FILE` to append what happens to, as JSON lines (default: lines beside the results)")
	f.StringArrayVar(&flags.proxies, "trusted-proxy", nil, "`NETWORK` of a proxy in front, such as 10.0.0.0/8: its X-Forwarded-For or Forwarded header says who comes, for limits and the audit; may be given several times")
	f.StringVar(&flags.upstream, "upstream", "", "issuer `URL` of an OpenID provider where people sign in")
	f.StringVar(&flags.upstreamClient, "upstream-client", "", "`ID` of this server there")
	f.StringVar(&flags.upstreamSecret, "upstream-secret-file", "", "`FILE` with the secret of this server there")
	flags.observed(f)
	return cmd
}

// serveIssuer serves until the person ends it.
func (p *program) serveIssuer(ctx context.Context, set *pflag.FlagSet, flags *issuerFlags) (err error) {
	if len(p.serverFlags)+len(p.headers) > 0 {
		return usagef("auth serve is a server itself; --server and --header are for commands that use one")
	}
	options, err := flags.options()
	if err != nil {
		return err
	}
	audit, err := p.openAudit(flags.auditFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, audit.Close()) }()
	counts := newIssuerMetrics()
	options.Audit, options.Logger = counts.before(audit.event), p.serverLogger()

	db, err := openDatabase(ctx, flags.database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	who, err := loginOf(flags, db, options)
	if err != nil {
		return err
	}
	watched, stop, err := flags.watch(ctx, p, set, counts)
	if err != nil {
		return err
	}
	defer stop()
	door := newLateHandler()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var tidying sync.WaitGroup
	defer func() { end(nil); tidying.Wait() }()
	listening := false
	var broken error
	err = web.Serve(ctx, flags.http, door, &web.ServeOptions{
		Grace:  shutdownTime,
		Logger: p.serverLogger(),
		Listening: func(addr net.Addr) {
			listening = true
			name := flags.issuer
			if name == "" {
				name = "http://" + reachable(addr)
			}
			server, err := issuer.New(name, db, who, options)
			if err == nil && flags.autoApprove != "" && !loopbackAddr(addr) {
				err = errNotHere // a name that stands for this machine may lead elsewhere
			}
			if err != nil {
				broken = usagef("%w", err)
				end(broken)
				return
			}
			tidying.Go(func() { _ = server.Run(ctx) }) // returns nil, when ctx has ended
			door.open(flags.front(watched(server, issuerEndpoint(server.Paths()))))
			p.announceIssuer(ctx, flags, name, reachable(addr), db)
		},
	})
	switch {
	case broken != nil:
		return broken
	case err != nil && !listening:
		return usagef("--http: %w", err)
	}
	return err
}

// front is what stands in front of the server.
func (f *issuerFlags) front(h http.Handler) http.Handler {
	if f.autoApprove != "" {
		return refuseProxied(h)
	}
	return h
}

var errNotHere = errors.New("--auto-approve is for tests on this machine: with it nobody may be let in from elsewhere")

func loopbackAddr(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// announceIssuer says where the server is, and what it lacks.
func (p *program) announceIssuer(ctx context.Context, flags *issuerFlags, name, addr string, db *records.DB) {
	at := ""
	if flags.issuer != "" {
		at = " (listening on " + addr + ")"
	}
	p.note("parley: the authorization server is %s%s; Ctrl-C ends it", name, at)
	for _, flag := range flags.resources {
		uri, scopes, _ := strings.Cut(flag, "=")
		p.note("parley: it issues tokens for %s, with the scopes: %s", uri, about(strings.ReplaceAll(scopes, ",", " "), "none"))
	}
	if strings.HasPrefix(name, "https:") && len(flags.proxies) == 0 {
		p.note("parley: https ends at a proxy in front; name it with --trusted-proxy, or all who come through it share one limit of attempts")
	}
	if len(flags.resources) == 0 {
		p.note("parley: it issues no tokens; name the MCP servers with --resource")
	}
	switch {
	case flags.autoApprove != "":
		p.note("parley: whoever comes is signed in as %s, without a question", flags.autoApprove)
	case flags.upstream != "":
		p.note("parley: people sign in at %s, which must know the redirect URI %s/login/callback", flags.upstream, strings.TrimSuffix(name, "/"))
	default:
		if users, err := db.ListUsers(ctx); err == nil && len(users) == 0 {
			p.note("parley: there are no users yet; add one with 'parley auth user add NAME%s'", databaseHint(flags.database))
		}
	}
}

// options makes the library's options of the flags.
func (f *issuerFlags) options() (*issuer.Options, error) {
	name, _, err := net.SplitHostPort(f.http)
	if err != nil {
		return nil, usagef("--http %q: write it as HOST:PORT or :PORT", f.http)
	}
	near := name == "" || oauth.LoopbackHost(name)
	if !near && f.issuer == "" {
		return nil, usagef("--http %q can be reached from other machines; give its public URL with --issuer https://…", f.http)
	}
	if f.autoApprove != "" {
		u, err := url.Parse(f.issuer)
		if !near || f.issuer != "" && (err != nil || !oauth.LoopbackHost(u.Hostname())) {
			return nil, &usageError{errNotHere}
		}
		if f.upstream != "" {
			return nil, usagef("give --auto-approve or --upstream, not both")
		}
	}
	if (f.upstream == "") != (f.upstreamClient == "") || f.upstream == "" && f.upstreamSecret != "" {
		return nil, usagef("--upstream and --upstream-client go together, and --upstream-secret-file with them")
	}
	if err := f.checkValues(); err != nil {
		return nil, err
	}
	trusted, err := readProxies(f.proxies)
	if err != nil {
		return nil, err
	}
	o := &issuer.Options{
		AccessLifetime: f.lifetime, Registration: issuer.RegistrationPolicy{On: f.registration},
		Remote: func(r *http.Request) string { return web.ClientAddress(r, trusted) },
	}
	for _, flag := range f.resources {
		r, err := readResource(flag)
		if err != nil {
			return nil, err
		}
		o.Resources = append(o.Resources, r)
	}
	if o.Clients, err = readStaticClients(f.clients); err != nil {
		return nil, err
	}
	return o, nil
}

// checkValues refuses values that could not work, under the names that they have here.
func (f *issuerFlags) checkValues() error {
	if f.lifetime < 0 || f.lifetime > 0 && f.lifetime < time.Second {
		return usagef("--access-lifetime %v: it must be a second at least", f.lifetime)
	}
	if f.issuer == "" {
		return nil
	}
	if _, err := oauth.CheckIssuer(f.issuer); err != nil {
		return usagef("--issuer %q: %w", f.issuer, err)
	}
	return nil
}

// readResource reads a --resource flag.
func readResource(flag string) (issuer.Resource, error) {
	uri, scopes, _ := strings.Cut(flag, "=")
	canonical, err := oauth.CanonicalResource(uri)
	if err != nil {
		return issuer.Resource{}, usagef("--resource %q: %w", flag, err)
	}
	r := issuer.Resource{URI: canonical}
	for _, scope := range strings.FieldsFunc(scopes, func(c rune) bool { return c == ',' }) {
		if list, err := oauth.ParseScope(scope); err != nil || len(list) != 1 {
			return r, usagef("--resource %q: write it as URI=SCOPE,SCOPE", flag)
		}
		r.Scopes = append(r.Scopes, issuer.Scope{Name: scope})
	}
	return r, nil
}

// readStaticClients reads the --client flags.
func readStaticClients(flags []string) ([]issuer.StaticClient, error) {
	var list []issuer.StaticClient
	for _, flag := range flags {
		id, redirect, found := strings.Cut(flag, "=")
		if !found || id == "" {
			return nil, usagef("--client %q: write it as ID=REDIRECT_URI", flag)
		}
		i := slices.IndexFunc(list, func(c issuer.StaticClient) bool { return c.ID == id })
		if i < 0 {
			i = len(list)
			list = append(list, issuer.StaticClient{ID: id, Metadata: oauth.ClientMetadata{
				ClientName: id, TokenEndpointAuthMethod: oauth.AuthNone,
				GrantTypes: []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken},
			}})
		}
		list[i].Metadata.RedirectURIs = append(list[i].Metadata.RedirectURIs, redirect)
	}
	return list, nil
}

// loginOf is how people sign in at the server.
func loginOf(flags *issuerFlags, db *records.DB, options *issuer.Options) (issuer.Login, error) {
	switch {
	case flags.autoApprove != "":
		return issuer.AutoApprove(flags.autoApprove), nil
	case flags.upstream != "":
		secret := ""
		if flags.upstreamSecret != "" {
			var err error
			if secret, err = secretFile("--upstream-secret-file", flags.upstreamSecret); err != nil {
				return nil, err
			}
		}
		u, err := url.Parse(flags.upstream)
		if err != nil || u.Host == "" {
			return nil, usagef("--upstream %q: write it like https://login.example", flags.upstream)
		}
		scopes := []string{"profile", "email"}
		options.Upstream = issuer.Upstream{Name: u.Host, Scopes: append([]string{"openid"}, scopes...)}
		made, err := userauth.NewUpstream(userauth.UpstreamOptions{
			Issuer: flags.upstream, ClientID: flags.upstreamClient, ClientSecret: secret, Scopes: scopes,
		})
		if err != nil {
			return nil, usagef("--upstream: %w", err)
		}
		return made, nil
	}
	options.Subjects = db
	return userauth.NewPasswords(db, &userauth.PasswordOptions{Remote: options.Remote}), nil
}

// A lateHandler is a handler that comes when the address is known: requests
// wait for it.
type lateHandler struct {
	ready   chan struct{}
	handler http.Handler
}

func newLateHandler() *lateHandler { return &lateHandler{ready: make(chan struct{})} }

// open lets the requests in. It is called once.
func (l *lateHandler) open(h http.Handler) {
	l.handler = h
	close(l.ready)
}

func (l *lateHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-l.ready:
		l.handler.ServeHTTP(w, r)
	case <-r.Context().Done():
	case <-time.After(shutdownTime):
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	}
}

// auditLine is an event in one line, for people.
func auditLine(e issuer.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Name, e.Outcome)
	for _, part := range [][2]string{
		{"client", e.Client},
		{"user", e.Subject},
		{"resource", e.Resource},
		{"scopes", oauth.JoinScope(e.Scopes)},
		{"grant", e.GrantType},
		{"from", e.Remote},
		{"because", e.Reason},
	} {
		if part[1] != "" {
			fmt.Fprintf(&b, " %s=%q", part[0], host.EscapeLine(part[1]))
		}
	}
	return b.String()
}
