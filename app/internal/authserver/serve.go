package authserver

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	auditlog "github.com/parley-mcp/parley/app/internal/audit"
	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/authserver/userauth"
	"github.com/parley-mcp/parley/app/internal/front"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/records"
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
	// secrets is the source of the key for secrets in the database.
	secrets string

	resources     []string
	clients       []string
	introspectors []string
	// introspectorIDs are those of the clients in the files of introspectors.
	introspectorIDs []string
	registration    bool
	autoApprove     string
	audit           auditFlags
	proxies         []string

	upstream, upstreamClient, upstreamSecret, upstreamGroups string

	grants grantFlags

	// admin is where the server is administered; its database, auditFile and auditKey are not used.
	admin adminFlags

	front.Observe
}

// databaseName is the file with the records of an authorization server.
const databaseName = "issuer.db"

func (g *group) serveCommand() *cobra.Command {
	flags := &issuerFlags{}
	cmd := &cobra.Command{
		Use:   "serve --http ADDRESS",
		Short: "Run an authorization server for MCP servers",
		Long: `Run an authorization server: users sign in there, and clients get tokens for the MCP
servers added with 'parley auth resource add' or --resource. Users are added with
'parley auth user add', or sign in at another provider (--upstream).

Clients are added with 'parley auth client add' or --client, use a metadata document,
or, with --allow-registration, register themselves. With --allow-device, they can sign
users in with a code on another device (RFC 8628). The records are an SQLite file, or
with --database postgres://… a PostgreSQL database, which several processes can share.

With --metrics, a separate address serves metrics for Prometheus: requests by endpoint
and status, their duration, sign-ins without names, tokens, rejections, the database
and the signing key. With --otlp, the server sends request traces to an OpenTelemetry
collector, as 'parley serve' does. Liveness and readiness are at /livez and /readyz.

The server does not support TLS. For other machines, put a TLS proxy in front, on this
machine or in a separate network; --issuer is the URL that the proxy shows, and
--trusted-proxy is the proxy's network.`,
		Example: `  parley auth user add ada
  parley auth serve --http 127.0.0.1:9000 --allow-registration \
    --resource http://127.0.0.1:8080/mcp=everything:read,everything:write
  parley auth serve --http :9000 --issuer https://login.example \
    --trusted-proxy 127.0.0.1 --client cli=http://127.0.0.1/callback \
    --resource https://mcp.example/mcp=files:read`,
		Args: kit.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.serveIssuer(cmd.Context(), cmd.Flags(), flags)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.http, "http", "", "`ADDRESS` to serve at, such as 127.0.0.1:9000")
	f.StringVar(&flags.issuer, "issuer", "", "public `URL` of the server, as shown by proxies in front (default: http://ADDRESS, on this machine)")
	databaseFlag(f, &flags.database)
	secretsKeyFlag(f, &flags.secrets)
	f.StringArrayVar(&flags.resources, "resource", nil, "`URI=SCOPE,SCOPE...` of an MCP server and its scopes (repeatable)")
	f.StringArrayVar(&flags.clients, "client", nil, "`ID=REDIRECT_URI` of a client (repeatable, with the same ID for several URIs)")
	f.StringArrayVar(&flags.introspectors, "introspector", nil, "`FILE` with a client that can introspect tokens (RFC 7662), for 'parley serve --introspect': {\"client_id\": …, \"client_secret\": …} (repeatable)")
	f.BoolVar(&flags.registration, "allow-registration", false, "let clients register themselves")
	f.StringVar(&flags.autoApprove, "auto-approve", "", "for tests: treat every visitor as `USER`, who consents; only on this machine")
	flags.grants.add(f)
	flags.audit.add(f)
	f.StringArrayVar(&flags.proxies, "trusted-proxy", nil, "`NETWORK` of a proxy in front, such as 10.0.0.0/8, whose X-Forwarded-For or Forwarded header names the client for limits and the audit (repeatable)")
	f.StringVar(&flags.upstream, "upstream", "", "issuer `URL` of an OpenID provider where users sign in")
	f.StringVar(&flags.upstreamClient, "upstream-client", "", "`ID` of this server there")
	f.StringVar(&flags.upstreamSecret, "upstream-secret-file", "", "`FILE` with the secret of this server there")
	f.StringVar(&flags.upstreamGroups, "upstream-groups-claim", "", "`CLAIM` of its ID tokens with the user's groups, such as groups, for 'parley auth resource scope --group'")
	f.StringVar(&flags.admin.admin, "admin", "", "`ADDRESS` for 'parley auth user' and other admin commands: unix:PATH, for the user that runs the server, or HOST:PORT on this machine with --admin-key-file")
	f.StringVar(&flags.admin.keyFile, "admin-key-file", "", "`FILE` with the key that these commands need, on one line")
	flags.AddObserveFlags(f)
	return cmd
}

// serveIssuer serves until the user ends it.
func (g *group) serveIssuer(ctx context.Context, set *pflag.FlagSet, flags *issuerFlags) (err error) {
	options, err := flags.options()
	if err != nil {
		return err
	}
	kept, err := flags.audit.options(set)
	if err != nil {
		return err
	}
	audit, err := g.openAudit(flags.audit.file, kept)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, audit.Close()) }()
	watched, err := watch(ctx, &flags.Observe, g, set, audit)
	if err != nil {
		return err
	}
	defer watched.stop()
	options.Audit, options.Observe, options.Logger = audit.event, watched.counts.event, g.ServerLogger()

	db, err := g.openServed(ctx, flags.database, flags.secrets, watched.records(flags.database))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	flags.readResources(options, db)
	audit.names = &subjectNames{find: db.SubjectName}
	who, err := loginOf(flags, db, options)
	if err != nil {
		return err
	}
	name := new(atomic.Value) // of the issuer, once it is known
	stopAdmin, err := g.startAdmin(ctx, &flags.admin, db, flags.adminOptions(audit, kept, name))
	if err != nil {
		return err
	}
	defer stopAdmin()
	s := &issuerService{p: g, flags: flags, db: db, login: who, options: options, audit: audit, watched: watched, door: front.NewLateHandler(), name: name}
	return s.serve(ctx)
}

// An issuerService is an authorization server that is served.
type issuerService struct {
	p       *group
	flags   *issuerFlags
	db      *records.DB
	login   issuer.Login
	options *issuer.Options
	audit   *audit
	watched *watched
	door    *front.LateHandler
	health  *front.Health
	name    *atomic.Value // the URL of the issuer, a string, once it is known

	tidying sync.WaitGroup // of the server's Run
}

// serve serves until ctx ends.
func (s *issuerService) serve(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer func() { end(nil); s.tidying.Wait() }()
	listening := false
	var broken error
	err := web.Serve(ctx, s.flags.http, s.door, &web.ServeOptions{
		Grace:  kit.ShutdownTime,
		Logger: s.p.ServerLogger(),
		Listening: func(addr net.Addr) {
			listening = true
			if err := s.open(ctx, addr); err != nil {
				broken = kit.Usagef("%w", err)
				end(broken)
				return
			}
			s.tidying.Go(func() { s.p.watchSecrets(ctx, s.db, end) })
		},
	})
	if s.health != nil {
		s.health.Close()
	}
	switch {
	case broken != nil:
		return broken
	case errors.As(context.Cause(ctx), new(*kit.UsageError)):
		return context.Cause(ctx)
	case err != nil && !listening:
		return kit.Usagef("--http: %w", err)
	}
	return err
}

// open makes the server and lets requests in, once its address is known.
func (s *issuerService) open(ctx context.Context, addr net.Addr) error {
	name := s.flags.issuer
	if name == "" {
		name = "http://" + front.Reachable(addr)
	}
	server, err := issuer.New(name, s.db, s.login, s.options)
	if err == nil && s.flags.autoApprove != "" && !loopbackAddr(addr) {
		err = errNotHere // a name that stands for this machine may lead elsewhere
	}
	if err != nil {
		return err
	}
	s.name.Store(name)
	s.watched.counts.server.Store(server)
	s.health = front.NewHealth(s.p.ServerLogger(),
		front.HealthCheck{Name: "database", Check: s.db.Ping},
		front.HealthCheck{Name: "signing_key", Check: func(ctx context.Context) error {
			_, err := server.SigningKey(ctx)
			return err
		}},
		front.HealthCheck{Name: "audit", Check: func(context.Context) error {
			if !s.audit.ready() {
				return errors.New("cannot write the audit file")
			}
			return nil
		}},
	)
	s.tidying.Go(func() { _ = server.Run(ctx) }) // returns nil, when ctx has ended
	endpoint := issuerEndpoint(server.Paths())
	s.door.Open(s.health.Front(s.flags.front(s.watched.around(s.audit.gate(server, endpoint), endpoint))))
	s.p.announceIssuer(ctx, s.flags, name, front.Reachable(addr), s.db)
	return nil
}

// front is what stands in front of the server.
func (f *issuerFlags) front(h http.Handler) http.Handler {
	if f.autoApprove != "" {
		return refuseProxied(h)
	}
	return h
}

var errNotHere = errors.New("--auto-approve is only for tests on this machine and cannot admit users from elsewhere")

func loopbackAddr(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// announceIssuer says where the server is, and what it lacks.
func (g *group) announceIssuer(ctx context.Context, flags *issuerFlags, name, addr string, db *records.DB) {
	at := ""
	if flags.issuer != "" {
		at = " (listening on " + addr + ")"
	}
	g.Note("parley: the authorization server is %s%s; Ctrl-C ends it", name, at)
	for _, flag := range flags.resources {
		uri, scopes, _ := strings.Cut(flag, "=")
		g.Note("parley: the server issues tokens for %s, with the scopes: %s", uri, cmp.Or(strings.ReplaceAll(scopes, ",", " "), "none"))
	}
	g.noteHidden(ctx, flags, db)
	if strings.HasPrefix(name, "https:") && len(flags.proxies) == 0 {
		g.Note("parley: https ends at a proxy in front; name it with --trusted-proxy, or all users behind it share one limit of attempts")
	}
	g.noteStored(ctx, flags, db)
	switch {
	case flags.autoApprove != "":
		g.Note("parley: the server signs in every visitor as %s without asking", flags.autoApprove)
	case flags.upstream != "":
		g.Note("parley: users sign in at %s, which must know the redirect URI %s/login/callback", flags.upstream, strings.TrimSuffix(name, "/"))
	default:
		if users, err := db.Users(ctx, "", 1); err == nil && len(users) == 0 {
			g.Note("parley: the server has no users yet; run 'parley auth user add NAME%s' to add one", databaseHint(flags.database))
		}
	}
}

// noteStored tells of the resources of the database.
func (g *group) noteStored(ctx context.Context, flags *issuerFlags, db *records.DB) {
	stored, err := db.Resources(ctx)
	switch {
	case err != nil:
		g.Note("parley: cannot read the resources in the database: %v", err)
	case len(stored) > 0:
		g.Note("parley: the server issues tokens for the %d resources in its database; run 'parley auth resource list%s' to list them", len(stored), databaseHint(flags.database))
	case len(flags.resources) == 0:
		g.Note("parley: the server issues no tokens yet; add MCP servers with 'parley auth resource add URI%s' or --resource", databaseHint(flags.database))
	}
	for _, r := range stored {
		if slices.ContainsFunc(flags.resources, func(flag string) bool { return sameResource(flag, r.URI) }) {
			g.Note("parley: --resource %s hides the resource with this URI in the database", host.EscapeLine(r.URI))
		}
	}
}

// sameResource reports whether a --resource flag is about a URI in canonical form.
func sameResource(flag, uri string) bool {
	r, err := readResource(flag)
	return err == nil && r.URI == uri
}

// noteHidden tells of clients of the database that those of the flags stand before.
func (g *group) noteHidden(ctx context.Context, flags *issuerFlags, db *records.DB) {
	told := map[string]bool{}
	for _, flag := range flags.clients {
		id, _, _ := strings.Cut(flag, "=")
		if _, err := db.Client(ctx, id, time.Now()); err == nil && !told[id] {
			told[id] = true
			g.Note("parley: --client %s hides the client with this id in the database; run 'parley auth client show %s' to see it", host.EscapeLine(id), host.EscapeLine(id))
		}
	}
}

// options makes the library's options of the flags.
func (f *issuerFlags) options() (*issuer.Options, error) {
	if f.http == "" {
		return nil, kit.Usagef("missing --http; write it as HOST:PORT or :PORT, such as --http 127.0.0.1:9000")
	}
	name, _, err := net.SplitHostPort(f.http)
	if err != nil {
		return nil, kit.Usagef("--http %q: must be HOST:PORT or :PORT", f.http)
	}
	near := name == "" || oauth.LoopbackHost(name)
	if !near && f.issuer == "" {
		return nil, kit.Usagef("--http %q is reachable from other machines; set its public URL with --issuer https://…", f.http)
	}
	if f.autoApprove != "" {
		u, err := url.Parse(f.issuer)
		if !near || f.issuer != "" && (err != nil || !oauth.LoopbackHost(u.Hostname())) {
			return nil, kit.Usagef("%w", errNotHere)
		}
		if f.upstream != "" {
			return nil, kit.Usagef("--auto-approve and --upstream cannot be used together")
		}
	}
	if (f.upstream == "") != (f.upstreamClient == "") || f.upstream == "" && (f.upstreamSecret != "" || f.upstreamGroups != "") {
		return nil, kit.Usagef("--upstream and --upstream-client must be used together; --upstream-secret-file and --upstream-groups-claim require both")
	}
	if err := f.checkValues(); err != nil {
		return nil, err
	}
	trusted, err := front.ReadProxies(f.proxies)
	if err != nil {
		return nil, err
	}
	o := &issuer.Options{
		Registration: issuer.RegistrationPolicy{On: f.registration},
		Remote:       func(r *http.Request) string { return web.ClientAddress(r, trusted) },
	}
	for _, flag := range f.resources {
		r, err := readResource(flag)
		if err != nil {
			return nil, err
		}
		o.Resources = append(o.Resources, r)
	}
	if o.Clients, err = readStaticClients(f.clients, f.grants.device); err != nil {
		return nil, err
	}
	if err := f.addIntrospectors(o); err != nil {
		return nil, err
	}
	f.grants.set(o)
	return o, nil
}

// checkValues refuses values that could not work, under the names that they have here.
func (f *issuerFlags) checkValues() error {
	if err := f.grants.check(); err != nil {
		return err
	}
	if f.issuer == "" {
		return nil
	}
	if _, err := oauth.CheckIssuer(f.issuer); err != nil {
		return kit.Usagef("--issuer %q: %w", f.issuer, err)
	}
	return nil
}

// readResource reads a --resource flag.
func readResource(flag string) (issuer.Resource, error) {
	uri, scopes, _ := strings.Cut(flag, "=")
	canonical, err := oauth.CanonicalResource(uri)
	if err != nil {
		return issuer.Resource{}, kit.Usagef("--resource %q: %w", flag, err)
	}
	r := issuer.Resource{URI: canonical}
	for _, scope := range strings.FieldsFunc(scopes, func(c rune) bool { return c == ',' }) {
		if list, err := oauth.ParseScope(scope); err != nil || len(list) != 1 {
			return r, kit.Usagef("--resource %q: must be URI=SCOPE,SCOPE", flag)
		}
		r.Scopes = append(r.Scopes, issuer.Scope{Name: scope})
	}
	return r, nil
}

// readStaticClients reads the --client flags. Only clients of devices need no redirect URI.
func readStaticClients(flags []string, device bool) ([]issuer.StaticClient, error) {
	var list []issuer.StaticClient
	for _, flag := range flags {
		id, redirect, found := strings.Cut(flag, "=")
		if !found || id == "" || redirect == "" && !device {
			return nil, kit.Usagef("--client %q: must be ID=REDIRECT_URI", flag)
		}
		i := slices.IndexFunc(list, func(c issuer.StaticClient) bool { return c.ID == id })
		if i < 0 {
			i = len(list)
			list = append(list, issuer.StaticClient{ID: id, Metadata: oauth.ClientMetadata{
				ClientName: id, TokenEndpointAuthMethod: oauth.AuthNone,
				GrantTypes: []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken},
			}})
		}
		if redirect != "" {
			list[i].Metadata.RedirectURIs = append(list[i].Metadata.RedirectURIs, redirect)
		}
	}
	return list, nil
}

// readResources has the server take resources and groups from its database.
func (f *issuerFlags) readResources(options *issuer.Options, db *records.DB) {
	options.MoreResources = func(ctx context.Context) ([]issuer.Resource, error) {
		all, err := db.Resources(ctx)
		for i := range all {
			all[i].Introspectors = append(all[i].Introspectors, f.introspectorIDs...)
		}
		return all, err
	}
	options.Groups = db.GroupsNow
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
			if secret, err = kit.ReadSecret("--upstream-secret-file", flags.upstreamSecret); err != nil {
				return nil, err
			}
		}
		u, err := url.Parse(flags.upstream)
		if err != nil || u.Host == "" {
			return nil, kit.Usagef("--upstream %q: must be a URL like https://login.example", flags.upstream)
		}
		scopes := []string{"profile", "email"}
		options.Upstream = issuer.Upstream{Name: u.Host, Scopes: append([]string{"openid"}, scopes...)}
		made, err := userauth.NewUpstream(userauth.UpstreamOptions{
			Issuer: flags.upstream, ClientID: flags.upstreamClient, ClientSecret: secret, Scopes: scopes,
			GroupsClaim: flags.upstreamGroups, OnGroups: db.SetLoginGroups,
		})
		if err != nil {
			return nil, kit.Usagef("--upstream: %w", err)
		}
		return made, nil
	}
	options.Subjects = db
	return userauth.NewPasswords(db, &userauth.PasswordOptions{Remote: options.Remote, Changes: db, Invitations: db}), nil
}

// adminOptions are those of the administration. kept are those of the audit file, nil if there is none;
// name is that of the issuer, once it is known.
func (f *issuerFlags) adminOptions(audit *audit, kept *auditlog.Options, name *atomic.Value) *admin.Options {
	o := &admin.Options{
		Audit: audit.act, Ready: audit.ready, NoPasswords: f.noPasswords(),
		Issuer: func() string { known, _ := name.Load().(string); return known },
	}
	if kept != nil {
		o.AuditFile, o.AuditKey = f.audit.file, kept.Key
	}
	return o
}

// noPasswords tells an operator why passwords are of no use at the server; "" if they are.
func (f *issuerFlags) noPasswords() string {
	switch {
	case f.autoApprove != "":
		return "this server asks nobody for a password: whoever comes is signed in as " + f.autoApprove +
			" (--auto-approve); start it without that flag first"
	case f.upstream != "":
		return "this server asks nobody for a password: people sign in with their accounts at " + f.upstream + " (--upstream); " +
			"add people and change passwords there"
	}
	return ""
}
