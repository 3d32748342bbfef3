package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/oauth/login/browser"
)

// Tokens are what one run of the program has for servers that want to know
// who calls: the tokens of the person, and the ways to new ones.
type Tokens struct {
	*login.Client
	Store login.Store
	Kind  string // where the store keeps things, for people
	Err   error  // why there is no store
	// clients are those that were registered beforehand.
	clients []KnownClient
	// options are those of Client.
	options login.Options
}

// SignIns are the user's sign-ins to the servers of one command: the ways to tokens, and what is asked on the
// way. Its methods have one caller at a time, except what its HTTP clients call.
type SignIns struct {
	*kit.Console
	// Login are the options of the command login; nil in other commands, which ask before they sign in.
	Login *LoginOptions
	// StoredOnly uses stored tokens, and never asks the user to sign in.
	StoredOnly bool
	// Chatting asks within a conversation, whose session is in the context of the request.
	Chatting bool
	// OnScreen reads pasted addresses from PastedAddress, because a screen has the keyboard.
	OnScreen bool

	around  func(http.RoundTripper) http.RoundTripper // what requests pass through
	several bool                                      // several servers could ask at once

	base      *Tokens            // what Base made
	entries   map[string]*Tokens // what entry and part made, by the names of entries and parts
	addresses addresses          // of the servers at URLs
	asking    sync.Mutex         // held while the user is asked to sign in
	wanted    addressWanted      // of the page that a sign-in ended at
}

// LoginOptions are how the user wants to sign in.
type LoginOptions struct {
	Issuer     string   // the authorization server to use, if the server names several
	Store      string   // the kind of store for tokens; empty is the default
	Scopes     []string // to ask for, besides those that the server wants
	AllowHosts []string // with private addresses, at which authorization servers may be
	NoBrowser  bool     // shows the address and reads the one that the browser ends at
	Device     bool     // signs in on another device
	Port       int      // that the browser comes back to; 0 is any
	Host       string   // of the redirect URI, if it is not the default
	Client     *KnownClient
}

// Base opens the person's tokens, once in a run. It never fails: servers
// that want no token must work without. What is wrong with the store comes
// when something is read from it, and is in err.
func (in *SignIns) Base(ctx context.Context) *Tokens {
	if in.base != nil {
		return in.base
	}
	flags := in.Login
	if flags == nil {
		flags = &LoginOptions{}
	}
	s := &Tokens{}
	in.base = s
	set, err := readSettings()
	if err == nil {
		if flags.Store != "" {
			set.Store = flags.Store
		}
		set.AllowHosts = append(set.AllowHosts, flags.AllowHosts...)
		s.Store, s.Kind, err = in.openSecrets(set.Store)
	}
	if err == nil {
		s.clients, err = readClients(ctx, s.Store)
	}
	if err != nil {
		s.Err = err
		s.Store = brokenStore{err}
	}
	if flags.Client != nil {
		s.clients = append(s.clients, *flags.Client)
	}
	for _, c := range s.clients {
		in.Streams.Masker().Learn(c.Secret)
	}
	s.options = login.Options{
		Store:           s.Store,
		Authorizer:      in.authorizer(flags),
		Fetch:           oauth.NewFetcher(&oauth.FetchOptions{AllowHosts: set.AllowHosts, Around: in.around}),
		SoftwareID:      "https://github.com/parley-mcp/parley",
		SoftwareVersion: kit.Version(),
		Credentials:     credentials(s.clients),
		Scopes:          flags.Scopes,
		Confirm:         in.confirm,
		NonInteractive:  in.StoredOnly || !in.Streams.InTerminal && in.Login == nil && !in.Chatting,
		Logger:          in.Logger(),
	}
	if flags.Device {
		s.options.Device = in.showDevice
	}
	if flags.Issuer != "" {
		s.options.ChooseServer = chooseIssuer(flags.Issuer)
	}
	s.Client = login.New(&s.options)
	return s
}

// chooseIssuer takes the authorization server that the person named.
func chooseIssuer(issuer string) func(context.Context, []string) (string, error) {
	return func(_ context.Context, offered []string) (string, error) {
		i := slices.IndexFunc(offered, func(o string) bool { return oauth.SameIssuer(o, issuer) })
		if i < 0 {
			return "", kit.Usagef("--issuer: the server does not use %s; it names %s", issuer, host.EscapeLine(strings.Join(offered, " and ")))
		}
		return offered[i], nil
	}
}

// authorizer takes the person through the browser: that of this machine, or
// one elsewhere.
func (in *SignIns) authorizer(flags *LoginOptions) login.Authorizer {
	read := func(ctx context.Context) (string, error) { return in.Streams.Keyboard().Line(ctx) }
	refused := func(err error) { in.Note("parley: %s", kit.ErrorText(err)) }
	if flags.NoBrowser {
		redirect := ""
		if flags.Port != 0 {
			redirect = fmt.Sprintf("http://%s:%d/callback", cmp.Or(flags.Host, "127.0.0.1"), flags.Port)
		}
		return browser.NewManual(&browser.ManualOptions{
			RedirectURI: redirect,
			Show: func(u string) {
				in.Note("Open this address in a browser, on any machine:\n\n  %s\n\nAfter you sign in, the browser shows a page that it cannot load. Paste its address here:", host.EscapeLine(u))
			},
			Read: func(ctx context.Context) (string, error) {
				line, err := read(ctx)
				if errors.Is(err, io.EOF) {
					err = errors.New("the input ended before an address was pasted")
				}
				return line, err
			},
			Refused: refused,
		})
	}
	// What is typed must not be an answer to the question of another server.
	paste := in.Streams.InTerminal && !in.several
	o := &browser.ReceiverOptions{
		Port: flags.Port, Host: flags.Host,
		Show: func(u string) {
			in.Note("Opening your browser. If it does not open, go to this address:\n\n  %s\n", host.EscapeLine(u))
			switch {
			case paste:
				in.Note("Waiting for you to sign in. If your browser is on another machine, paste the address of its last page here.")
			case in.Login != nil:
				in.Note("Waiting for you to sign in. If your browser is on another machine, press Ctrl-C and use --no-browser.")
			}
		},
	}
	if paste {
		o.Read, o.Refused = in.pastedAddress, refused
	}
	return browser.NewReceiver(o)
}

// showDevice shows the code with which a person signs in on another device. The library has checked
// that it can be shown.
func (in *SignIns) showDevice(_ context.Context, q login.DevicePrompt) error {
	in.Note("\nOpen this address in a browser, on any device:\n\n  %s\n\nand enter the code\n\n  %s\n",
		host.EscapeLine(q.VerificationURI), host.EscapeLine(q.UserCode))
	if q.VerificationURIComplete != "" {
		in.Note("This address contains the code; compare it with the one above:\n\n  %s\n", host.EscapeLine(q.VerificationURIComplete))
	}
	in.Note("Waiting for you to sign in, for at most %s. Press Ctrl-C to cancel.", kit.RoundDuration(time.Until(q.Expires)))
	return nil
}

// pastedAddress waits for the address of a page. In a conversation it may also be that the
// person goes on typing meanwhile: what is no address is a message, which waits.
func (in *SignIns) pastedAddress(ctx context.Context) (string, error) {
	if in.OnScreen {
		return in.addressSent(ctx)
	}
	for {
		line, err := in.Streams.Keyboard().Line(ctx)
		if err != nil && ctx.Err() != nil && in.Login == nil { // a line would have been taken for the address
			in.Note("You don't need to paste an address any more.")
		}
		if err != nil || !in.Streams.Diverting() || isAddress(line) {
			return line, err
		}
		in.Streams.Keyboard().Leave(line)
	}
}

// isAddress reports whether a line could be the address of a page that a sign-in ended at,
// or the end of one. With blanks, as where a terminal broke it, it has a code or an error in it:
// else it is a message with an address in it.
func isAddress(line string) bool {
	line = strings.TrimSpace(line)
	whole := strings.Contains(line, "://")
	if strings.ContainsFunc(line, unicode.IsSpace) {
		return whole && (strings.Contains(line, "code=") || strings.Contains(line, "error="))
	}
	return whole || strings.ContainsAny(line, "?=")
}

// errNotNow is the person's no.
var errNotNow = errors.New("you chose not to sign in")

// confirm shows who asks for what, and asks whether to go on; not in the
// command login, which the person gave for that. In a conversation it is a question of its.
func (in *SignIns) confirm(ctx context.Context, q login.Prompt) error {
	if in.Chatting {
		return in.confirmInChat(ctx, &q)
	}
	in.asking.Lock() // several servers may want it at once
	defer in.asking.Unlock()
	scopes := oauth.JoinScope(q.Scopes)
	if scopes == "" {
		scopes = "chosen by the authorization server"
	}
	switch {
	case q.Why == login.ReasonStepUp:
		in.Note("\nA server requests more scopes than you have granted.")
	case in.Login != nil:
		in.Note("Sign-in:")
	default:
		in.Note("\nA server wants you to sign in.")
	}
	in.Note("  server:               %s", host.EscapeLine(q.Resource))
	in.Note("  authorization server: %s", host.EscapeLine(q.Issuer))
	in.Note("  scopes:               %s", host.EscapeLine(scopes))
	if q.Why == login.ReasonServerChanged {
		in.Note("  WARNING: the authorization server has changed; it was: %s", host.EscapeLine(q.PreviousIssuer))
	}
	if in.Login != nil {
		return nil
	}
	for range 3 {
		line, err := in.AskLine(ctx, fmt.Sprintf("Sign in to %s at %s now? [y]es, [n]o: ", host.EscapeLine(q.Resource), host.EscapeLine(q.Issuer)))
		if err != nil {
			return fmt.Errorf("%w: %w", errNotNow, err)
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		case "n", "no":
			return errNotNow
		}
		in.Note("Answer y or n.")
	}
	return errNotNow
}

// Client returns the HTTP client for a server at a URL: one that puts tokens
// on requests and has the person sign in where it must be. A request with an
// Authorization header of the person's own goes as it is.
func (in *SignIns) Client(ctx context.Context, address *url.URL) *http.Client {
	in.addresses.add(address)
	return in.Base(ctx).HTTPClient(in.plain())
}

// plain returns an HTTP client without tokens.
func (in *SignIns) plain() *http.Client {
	return &http.Client{Transport: in.around(connections())}
}

// addresses are the URLs of servers as the person wrote them: errors of login
// have those of requests.
type addresses struct {
	mu  sync.Mutex
	all []*url.URL
}

func (a *addresses) add(u *url.URL) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, u)
}

// name adds to what ended the way to a token the address of the server, if err
// is that: the address on the same host that has most in common with the URL of
// the request.
func (a *addresses) name(err error) error {
	ended, ok := errors.AsType[*login.Error](err)
	if !ok {
		return err
	}
	u, bad := url.Parse(ended.Resource)
	if bad != nil {
		return err
	}
	if errors.As(err, new(*accessError)) {
		return err // that of an entry, which has its address
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	best, length := "", -1
	for _, known := range a.all {
		common := 0
		for common < min(len(known.Path), len(u.Path)) && known.Path[common] == u.Path[common] {
			common++
		}
		if known.Host == u.Host && common > length {
			best, length = Origin(known), common
		}
	}
	return &accessError{address: best, err: err}
}

// An accessError adds the address of a server to why there is no token for it, and the
// name of its entry, if it has one.
type accessError struct {
	address, entry string
	err            error
}

// Error is for people where it is known what the person can do.
func (e *accessError) Error() string {
	var required *login.SignInRequiredError
	if e.entry != "" && errors.As(e.err, &required) {
		return wantsSignIn(required, e.address, e.entry)
	}
	return e.err.Error()
}

func (e *accessError) Unwrap() error { return e.err }

// ExitAccess returns the exit code for what ended the way to a token, if err is that.
func ExitAccess(err error) (code int, ok bool) {
	var required *login.SignInRequiredError
	var refused *login.AuthorizationError
	var discovery *login.DiscoveryError
	var said *oauth.Error
	var network *net.OpError
	var ended *login.Error
	switch {
	case errors.As(err, &required), errors.As(err, &refused), errors.Is(err, errNotNow), errors.As(err, &said):
		return kit.ExitConsent, true
	case errors.As(err, &discovery), errors.As(err, &ended):
		if errors.As(err, &network) {
			return kit.ExitUnreachable, true
		}
		return kit.ExitConsent, true
	}
	return 0, false
}

// ExplainAccess returns the text for an error on the way to a token, if err is one.
func ExplainAccess(err error) (text string, ok bool) {
	var required *login.SignInRequiredError
	var noted *accessError
	var ended *login.Error
	switch {
	case errors.As(err, &required):
		address, target := required.Resource, ""
		if errors.As(err, &noted) {
			address, target = noted.address, noted.entry
		}
		return wantsSignIn(required, address, cmp.Or(target, address)), true
	case errors.As(err, &noted) && noted.address != "": // not the way there, which is long
		text := host.EscapeLine(noted.address) + ": "
		if errors.Is(err, errNotNow) {
			return text + errNotNow.Error(), true
		}
		if errors.As(noted.err, &ended) {
			return text + ForPeople.Replace(kit.ErrorText(ended)), true
		}
		return text + ForPeople.Replace(kit.ErrorText(noted.err)), true
	case errors.As(err, &ended), errors.As(err, new(*login.DiscoveryError)):
		return ForPeople.Replace(kit.ErrorText(err)), true
	}
	return "", false
}

// wantsSignIn says what to do where nobody can be asked. The target is what the command
// login takes.
func wantsSignIn(e *login.SignInRequiredError, address, target string) string {
	command := "parley login " + kit.SafeWord(target)
	text := host.EscapeLine(address) + " wants you to sign in"
	if e.Why == login.ReasonStepUp {
		text = fmt.Sprintf("%s wants you to sign in for more scopes (%s)", host.EscapeLine(address), host.EscapeLine(oauth.JoinScope(e.Scopes)))
		for _, scope := range e.Scopes {
			command += " --scope " + kit.SafeWord(scope)
		}
	}
	text += ": run '" + command + "'"
	if e.Why != login.ReasonStepUp && oauth.SameIssuer(e.Issuer, e.Resource) {
		// Nothing says that it takes tokens at all: it names no authorization
		// server, and so is taken for its own, as in revision 2025-03-26.
		text += "; if it uses a key instead, send it with --header 'Name: value'"
	}
	return text
}

// ForPeople puts flags in the place of the library's options.
var ForPeople = strings.NewReplacer(
	"Options.Credentials", "--client-id",
	"FetchOptions.AllowHosts", "'parley login --allow-host'",
	"set the Authorization header yourself", "set it with --header",
	"if that place is trusted, allow it with Options.MetadataOrigins", "tell the server's operator",
	"if that is meant, set Options.Loopback", "tell the server's operator",
	"the server may only serve programs: set Options.Grant", "the server might only serve programs",
	"authorize a request: ", "",
)

// ServerURL reads the URL of a server that the person wants to sign in to.
func ServerURL(address string) (*url.URL, error) {
	if !kit.IsURL(address) {
		return nil, kit.Usagef("%q: not a URL; write it like https://example.com/mcp", Shown(address))
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, kit.Usagef("%q: %w", Shown(address), NoURL(address, err))
	}
	if u.Host == "" || u.User != nil {
		return nil, kit.Usagef("%q: write it like https://example.com/mcp", Shown(address))
	}
	// WebSockets are opened over HTTP, and that is where tokens go.
	switch u.Scheme {
	case "ws":
		u.Scheme = "http"
	case "wss":
		u.Scheme = "https"
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !oauth.LoopbackHost(u.Hostname())) {
		return nil, kit.Usagef("%q: tokens are only sent over https or within this machine; write https:// or wss:// if the server supports it", Shown(address))
	}
	return u, nil
}

// At returns what is stored for the server at a URL, or nil.
func (s *Tokens) At(ctx context.Context, u *url.URL) (*login.Status, error) {
	all, err := s.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the token store: %w", err)
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

// ForgetClients removes the clients of authorization servers that are used for
// nothing any more.
func (s *Tokens) ForgetClients(ctx context.Context) error {
	left, err := s.Status(ctx)
	if err != nil {
		return fmt.Errorf("reading the token store: %w", err)
	}
	return changeClients(ctx, s.Store, func(list []KnownClient) []KnownClient {
		return slices.DeleteFunc(list, func(c KnownClient) bool {
			return !slices.ContainsFunc(left, func(r login.Status) bool { return oauth.SameIssuer(r.Issuer, c.Issuer) })
		})
	})
}

// Open returns the tokens of flags and entries that were used in this run.
func (in *SignIns) Open() []*Tokens {
	list := slices.Collect(maps.Values(in.entries))
	if in.base != nil {
		list = append(list, in.base)
	}
	return list
}

// Close ends the sign-ins in progress.
func (in *SignIns) Close() {
	for _, s := range in.Open() {
		if err := s.Close(); err != nil {
			in.Logger().Warn("ending the sign-ins", "error", err)
		}
	}
}

// Named adds to an error that ended the way to a token the address of the server.
func (in *SignIns) Named(err error) error { return in.addresses.name(err) }
