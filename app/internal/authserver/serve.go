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
		Long: `Run an authorization server: people sign in there, and clients get tokens for
the MCP servers that 'parley auth resource add' adds, and those of --resource.
People are its own users, which 'parley auth user add' adds, or those of another
provider (--upstream).

Clients are those that 'parley auth client add' adds, those of --client, clients
with a metadata document, and with --allow-registration any that registers itself.
With --allow-device they may sign people in on another device, by a code (RFC 8628).
Its records are an SQLite file, or with --database postgres://… a PostgreSQL database,
which several processes may share.

With --metrics a page for Prometheus shows requests by endpoint and status, how
long they take, how people sign in, without their names, tokens, refusals, the
database and the signing key, at an address of its own. With --otlp traces of
requests go to a collector of OpenTelemetry, as with 'parley serve'. Whether it is
alive and ready is at /livez and /readyz.

It speaks no TLS. For other machines put a proxy that does in front, on this
machine or in a network of its own; --issuer is the URL that it shows, and
--trusted-proxy where it is.`,
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
	f.StringVar(&flags.issuer, "issuer", "", "public `URL` of the server, as proxies in front show it (default: http://ADDRESS, on this machine)")
	databaseFlag(f, &flags.database)
	secretsKeyFlag(f, &flags.secrets)
	f.StringArrayVar(&flags.resources, "resource", nil, "`URI=SCOPE,SCOPE...` of an MCP server and its scopes; may be given several times")
	f.StringArrayVar(&flags.clients, "client", nil, "`ID=REDIRECT_URI` of a client; several times, with the same ID for several URIs")
	f.StringArrayVar(&flags.introspectors, "introspector", nil, "`FILE` with a client that may ask about tokens (RFC 7662), for 'parley serve --introspect': {\"client_id\": …, \"client_secret\": …}; may be given several times")
	f.BoolVar(&flags.registration, "allow-registration", false, "let clients register themselves")
	f.StringVar(&flags.autoApprove, "auto-approve", "", "for tests: whoever comes is `USER` and agrees; on this machine alone")
	flags.grants.add(f)
	flags.audit.add(f)
	f.StringArrayVar(&flags.proxies, "trusted-proxy", nil, "`NETWORK` of a proxy in front, such as 10.0.0.0/8: its X-Forwarded-For or Forwarded header says who comes, for limits and the audit; may be given several times")
	f.StringVar(&flags.upstream, "upstream", "", "issuer `URL` of an OpenID provider where people sign in")
	f.StringVar(&flags.upstreamClient, "upstream-client", "", "`ID` of this server there")
	f.StringVar(&flags.upstreamSecret, "upstream-secret-file", "", "`FILE` with the secret of this server there")
	f.StringVar(&flags.upstreamGroups, "upstream-groups-claim", "", "`CLAIM` of its ID tokens with the groups of a person, such as groups, for 'parley auth resource scope --group'")
	f.StringVar(&flags.admin.admin, "admin", "", "`ADDRESS` where 'parley auth user' and other commands administer the server: unix:PATH, for the user that runs it, or HOST:PORT on this machine with --admin-key-file")
	f.StringVar(&flags.admin.keyFile, "admin-key-file", "", "`FILE` with the key that they must have, in one line")
	flags.AddObserveFlags(f)
	return cmd
}

// serveIssuer serves until the person ends it.
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
				return errors.New("the audit file cannot be written")
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

var errNotHere = errors.New("--auto-approve is for tests on this machine: with it nobody may be let in from elsewhere")

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
		g.Note("parley: it issues tokens for %s, with the scopes: %s", uri, cmp.Or(strings.ReplaceAll(scopes, ",", " "), "none"))
	}
	g.noteHidden(ctx, flags, db)
	if strings.HasPrefix(name, "https:") && len(flags.proxies) == 0 {
		g.Note("parley: https ends at a proxy in front; name it with --trusted-proxy, or all who come through it share one limit of attempts")
	}
	g.noteStored(ctx, flags, db)
	switch {
	case flags.autoApprove != "":
		g.Note("parley: whoever comes is signed in as %s, without a question", flags.autoApprove)
	case flags.upstream != "":
		g.Note("parley: people sign in at %s, which must know the redirect URI %s/login/callback", flags.upstream, strings.TrimSuffix(name, "/"))
	default:
		if users, err := db.Users(ctx, "", 1); err == nil && len(users) == 0 {
			g.Note("parley: there are no users yet; add one with 'parley auth user add NAME%s'", databaseHint(flags.database))
		}
	}
}

// noteStored tells of the resources of the database.
func (g *group) noteStored(ctx context.Context, flags *issuerFlags, db *records.DB) {
	stored, err := db.Resources(ctx)
	switch {
	case err != nil:
		g.Note("parley: the resources of the database cannot be read: %v", err)
	case len(stored) > 0:
		g.Note("parley: it issues tokens for the resources of its database, %d; 'parley auth resource list%s' shows them", len(stored), databaseHint(flags.database))
	case len(flags.resources) == 0:
		g.Note("parley: it issues no tokens yet; add the MCP servers with 'parley auth resource add URI%s', or name them with --resource", databaseHint(flags.database))
	}
	for _, r := range stored {
		if slices.ContainsFunc(flags.resources, func(flag string) bool { return sameResource(flag, r.URI) }) {
			g.Note("parley: --resource %s hides the resource of this URI in the database", host.EscapeLine(r.URI))
		}
	}
}

// sameResource says whether a --resource flag is about a URI in canonical form.
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
			g.Note("parley: --client %s hides the client of this id in the database; 'parley auth client show %s' shows that", host.EscapeLine(id), host.EscapeLine(id))
		}
	}
}

// options makes the library's options of the flags.
func (f *issuerFlags) options() (*issuer.Options, error) {
	if f.http == "" {
		return nil, kit.Usagef("--http is missing; write it as HOST:PORT or :PORT, such as --http 127.0.0.1:9000")
	}
	name, _, err := net.SplitHostPort(f.http)
	if err != nil {
		return nil, kit.Usagef("--http %q: must be HOST:PORT or :PORT", f.http)
	}
	near := name == "" || oauth.LoopbackHost(name)
	if !near && f.issuer == "" {
		return nil, kit.Usagef("--http %q can be reached from other machines; give its public URL with --issuer https://…", f.http)
	}
	if f.autoApprove != "" {
		u, err := url.Parse(f.issuer)
		if !near || f.issuer != "" && (err != nil || !oauth.LoopbackHost(u.Hostname())) {
			return nil, kit.Usagef("%w", errNotHere)
		}
		if f.upstream != "" {
			return nil, kit.Usagef("give --auto-approve or --upstream, not both")
		}
	}
	if (f.upstream == "") != (f.upstreamClient == "") || f.upstream == "" && (f.upstreamSecret != "" || f.upstreamGroups != "") {
		return nil, kit.Usagef("--upstream and --upstream-client go together, and --upstream-secret-file and --upstream-groups-claim with them")
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
			return r, kit.Usagef("--resource %q: write it as URI=SCOPE,SCOPE", flag)
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
			return nil, kit.Usagef("--client %q: write it as ID=REDIRECT_URI", flag)
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
			return nil, kit.Usagef("--upstream %q: write it like https://login.example", flags.upstream)
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
