package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema/provider"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// Options are what is not required of a proxy. A nil *Options, and each zero
// field, means the default that is told.
type Options struct {
	// Client are the options of the connection to the upstream server. Handlers
	// of questions and of log messages that are set here are used in the place
	// of asking and telling callers; OnToolsChanged and the like are called
	// in addition to what the proxy does. Nothing is kept in Client.Cache: results are of
	// one caller.
	Client client.Options
	// Server are the options of Proxy.Server. Title, Description, WebsiteURL,
	// Icons and Instructions are those of the upstream server by default.
	Server server.Options
	// Schemas is what the provider of the callers' models takes of the input schemas of
	// tools, such as &provider.Gemini: callers see the schemas reduced to that, with what is
	// left out in the descriptions. The proxy checks arguments against the whole schemas, and
	// refuses calls that do not fit. Default nil: the schemas are passed on whole, and the
	// upstream server alone checks.
	Schemas *provider.Profile
	// NoQuestions declares no capability to the upstream server, so that it asks
	// nothing but what handlers in Client answer. Its calls then run at the same
	// time also if it has a handshake.
	NoQuestions bool
	// Refresh is how often lists are read again that the upstream server does
	// not tell the changes of. Default 1 min; negative means never.
	Refresh time.Duration
	// MaxRounds is how often the upstream server may ask within one call.
	// Default 8.
	MaxRounds int
	// MaxKept is how many calls of an upstream server with a handshake wait for
	// the answers of callers of stateless revisions, in all and for one
	// principal (anonymous callers: one address). Until there is room, further
	// calls are refused, and the questions of those that have begun wait, for
	// KeptTime at most. Defaults 256 and 16.
	MaxKept, MaxKeptPerPrincipal int
	// KeptTime is how long a question of an upstream server with a handshake
	// waits for its answer. Then the call is cancelled, since its caller may never
	// come back, and others wait for their turn. Default 2 min.
	KeptTime time.Duration
	// MaxQueued is how many calls wait for their turn at an upstream server with a
	// handshake, in all and for one principal (anonymous callers: one address); more
	// calls are refused until there is room. Defaults 1,024 and 256.
	MaxQueued, MaxQueuedPerPrincipal int
	// QueueTime is how long a call waits for its turn, while its own time limits
	// stand still. Then it is refused. Default 5 min.
	QueueTime time.Duration
	// Logger logs what no caller is told: tools that cannot be offered, log
	// messages that belong to no caller. Default slog.Default.
	Logger *slog.Logger
}

// ErrClosed is the cause of the end of what was under way when a proxy was closed.
var ErrClosed = errors.New("the proxy was closed")

// A Proxy is a connection to an upstream server, and the server that it makes of
// it. Its methods may be called by many goroutines at once.
type Proxy struct {
	opts   Options
	log    *slog.Logger
	client *client.Client
	srv    *server.Server

	connected atomic.Bool // client is set: its handlers can run before that

	ctx  context.Context //nolint:containedctx // the proxy's life, which its goroutines share
	stop context.CancelCauseFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	closed bool

	lists lists
	order callOrder
	calls calls
	kept  keptCalls
	watch watches
	level levels
}

// Connect connects to an upstream server and reads what it offers. The end of ctx
// ends the attempt, not the proxy. Errors are those of [client.Connect] and of the
// first reading of lists.
func Connect(ctx context.Context, dialer transport.Dialer, o *Options) (*Proxy, error) {
	p := new(Proxy)
	if o != nil {
		p.opts = *o
	}
	p.opts.Refresh = cmp.Or(p.opts.Refresh, time.Minute)
	p.opts.MaxRounds = cmp.Or(p.opts.MaxRounds, 8)
	p.opts.MaxKept = cmp.Or(p.opts.MaxKept, 256)
	p.opts.MaxKeptPerPrincipal = cmp.Or(p.opts.MaxKeptPerPrincipal, 16)
	p.opts.KeptTime = cmp.Or(p.opts.KeptTime, 2*time.Minute)
	p.opts.MaxQueued = cmp.Or(p.opts.MaxQueued, 1024)
	p.opts.MaxQueuedPerPrincipal = cmp.Or(p.opts.MaxQueuedPerPrincipal, 256)
	p.opts.QueueTime = cmp.Or(p.opts.QueueTime, 5*time.Minute)
	p.log = p.opts.Logger
	if p.log == nil {
		p.log = slog.Default()
	}
	p.ctx, p.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	p.init()
	c, err := client.Connect(ctx, dialer, p.clientOptions())
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p.client = c
	p.connected.Store(true)
	p.srv = p.newServer()
	if err := p.readLists(ctx); err != nil {
		_ = p.Close()
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p.spawn(p.keepLists)
	p.spawn(p.keepWatch)
	return p, nil
}

// spawn runs f on a goroutine that Close waits for. It reports false, and does
// nothing, when the proxy is closed.
func (p *Proxy) spawn(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.wg.Go(f)
	}
	return !p.closed
}

// init makes what the handlers of the client need.
func (p *Proxy) init() {
	p.lists.init()
	p.order.init()
	p.kept.init(&p.opts)
	p.watch.init()
	p.level.init(p.opts.Client.LogLevel)
}

// newServer makes the server that stands for the upstream server.
func (p *Proxy) newServer() *server.Server {
	info := mcp.Implementation{Name: "proxy", Version: "devel"}
	if said := p.client.Server(); said != nil {
		info = *said
	}
	caps, o := p.client.Capabilities(), p.opts.Server
	o.Title, o.Description = cmp.Or(o.Title, info.Title), cmp.Or(o.Description, info.Description)
	o.WebsiteURL = cmp.Or(o.WebsiteURL, info.WebsiteURL)
	if o.Icons == nil {
		o.Icons = info.Icons
	}
	o.Instructions = cmp.Or(o.Instructions, p.client.Instructions())
	o.DeclareTools = o.DeclareTools || caps.Tools != nil
	o.DeclarePrompts = o.DeclarePrompts || caps.Prompts != nil
	o.DeclareResources = o.DeclareResources || caps.Resources != nil
	o.Logger = cmp.Or(o.Logger, p.log)
	s := server.New(info.Name, info.Version, &o)
	if caps.Resources != nil {
		s.OnSubscribe(p.subscribing)
		s.ReadUnlisted(server.Reader{Read: p.read, Watch: p.watchResource})
	}
	return s
}

// Server is the server that offers what the upstream server does. It can be
// mounted in another, or served by any transport. The proxy adds and removes
// features; middleware and Visible are the caller's to set, before the first
// request.
func (p *Proxy) Server() *server.Server { return p.srv }

// Client is the connection to the upstream server.
func (p *Proxy) Client() *client.Client { return p.client }

// Close ends the connection and all calls under way, and returns once nothing of
// them is left: no goroutine, no process. Calls of Server answer with an error
// from then on.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop(ErrClosed)
	err := p.client.Close()
	p.wg.Wait()
	p.kept.close()
	return err
}
