package inspect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// DefaultConnectTimeout is how long a connection may take to be ready.
const DefaultConnectTimeout = 15 * time.Second

// A Target is a server that can be connected to.
type Target struct {
	// Name and Origin are what the user calls it, and where it comes from.
	Name, Origin string
	// Dialer makes a connection.
	Dialer transport.Dialer
	// Info is what the server is told about this program.
	Info mcp.Implementation
	// Legacy and Modern are the revisions with a handshake and those without that may be
	// spoken. One of them may be empty.
	Legacy, Modern []string
	// ConnectTimeout is how long a connection may take to be ready, without the time of a
	// person who signs in. Default [DefaultConnectTimeout]; negative is no limit.
	ConnectTimeout time.Duration
	// Timeout is how long a request may be silent; default that of package client.
	Timeout time.Duration
	// Roots are the folders that the server is told when it asks.
	Roots []mcp.Root
	// Apps declares that pages of tools can be shown, for servers that offer them to such
	// clients alone.
	Apps bool
	// OnElicit, OnElicitURL and OnSample answer what the server asks meanwhile, as those of
	// client.Options; nil does not declare that it can be asked.
	OnElicit    func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error)
	OnElicitURL func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error)
	OnSample    func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)
	// Allow is asked before each request that a method makes, with its params; its error ends the
	// method. Default: all are allowed.
	Allow func(method string, params mcp.RawValue) error
	// Meta goes into _meta of each request but those that open the connection.
	Meta map[string]mcp.RawValue
	// OnUpdate is told the URI of a resource that is subscribed to and has changed.
	OnUpdate func(uri string)
	// OnDisconnect is told that a connection ended by itself, which is not made anew then.
	// Default: it is made anew.
	OnDisconnect func(err error)
	// Watcher is shown what the dialer's connections carry, for the method watch.
	Watcher *Watcher
	// LogLevel is from which level on the server is asked for log messages, without asking
	// for them if it is empty.
	LogLevel mcp.LogLevel
	// Logger takes what no method returns; default none.
	Logger *slog.Logger

	watching bool // changes of lists are asked for
	once     bool // no request is sent again that the server refused
}

// A Session is one connection with a server.
type Session struct {
	client  *client.Client
	target  *Target
	opening mcp.RawValue // the result of initialize, as it came

	mu  sync.Mutex
	set []mcp.Root // in the place of those of the target, if it is not nil
}

// errConnectTimeout is the cause of a connection that was not ready in time.
var errConnectTimeout = errors.New("connection timed out")

// Connect opens a session. The caller closes it.
func (t *Target) Connect(ctx context.Context) (*Session, error) {
	return t.connect(ctx, append(append([]string{}, t.Modern...), t.Legacy...))
}

// connect opens a session in one of the revisions.
func (t *Target) connect(ctx context.Context, versions []string) (*Session, error) {
	s := &Session{target: t}
	o := &client.Options{
		Info: t.Info, Versions: versions, Eras: client.NewEraMemory(), CallTimeout: t.Timeout, CacheEntries: -1,
		Extensions: []client.Extension{tasks.Client(nil), skills.Extension()},
		OnRoots:    func(context.Context) ([]mcp.Root, error) { return s.roots(), nil },
		Middleware: []client.Middleware{s.meet},
		LogLevel:   t.LogLevel,
		Logger:     t.Logger,

		OnDisconnect: t.OnDisconnect,

		OnElicit: t.OnElicit, OnElicitURL: t.OnElicitURL, OnSample: t.OnSample,
	}
	if t.once {
		o.Retries = -1
	}
	if t.watching {
		seen := func(context.Context) {}
		o.OnToolsChanged, o.OnPromptsChanged, o.OnResourcesChanged = seen, seen, seen
	}
	if t.Apps {
		o.Extensions = append(o.Extensions, apps.Extension())
	}
	if t.OnUpdate != nil {
		o.OnResourceUpdated = func(_ context.Context, uri string) { t.OnUpdate(uri) }
	}
	limit := t.ConnectTimeout
	if limit == 0 {
		limit = DefaultConnectTimeout
	}
	o.ConnectTimeout = limit
	if limit > 0 {
		var cancel context.CancelFunc
		cause := fmt.Errorf("%w: the server was not ready after %v; allow more time with --connect-timeout", errConnectTimeout, limit)
		ctx, cancel = transport.WithTimeout(ctx, limit, cause)
		defer cancel()
	}
	c, err := client.Connect(ctx, t.Dialer, o)
	if err != nil {
		var last *web.StatusError
		switch cause := context.Cause(ctx); {
		case cause != nil && errors.As(err, &last):
			err = fmt.Errorf("%w (%w)", cause, last)
		case cause != nil:
			err = cause
		}
		return nil, &connectError{err}
	}
	s.client = c
	return s, nil
}

// A connectError is why there is no connection.
type connectError struct{ err error }

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// meet is middleware that adds Target.Meta to requests, and keeps how the server opened
// the connection.
func (s *Session) meet(next client.Func) client.Func {
	return func(ctx context.Context, r *client.Request) (client.Result, error) {
		switch r.Method() {
		case mcp.MethodInitialize:
			result, err := next(ctx, r)
			if raw, ok := result.(mcp.RawValue); ok {
				s.opening = raw
			}
			return result, err
		case mcp.MethodDiscover, mcp.MethodListen:
		default:
			for key, value := range s.target.Meta {
				if err := r.SetMeta(key, value); err != nil {
					return nil, &Error{Exit: ExitUsage, Code: codeUsage, Message: "--metadata: " + err.Error()}
				}
			}
		}
		return next(ctx, r)
	}
}

// Close ends the connection, and returns when that is done.
func (s *Session) Close() error { return s.client.Close() }

// Version is the revision that is spoken.
func (s *Session) Version() string { return s.client.Version() }

// ask sends a request and returns its result as it came.
func (s *Session) ask(ctx context.Context, method string, params any, o *client.CallOptions) (mcp.RawValue, error) {
	var raw mcp.RawValue
	if o == nil {
		o = &client.CallOptions{}
	}
	o.NoCache = true
	if err := s.target.allows(method, params); err != nil {
		return nil, err
	}
	err := s.client.Request(ctx, method, params, &raw, o)
	return raw, err
}

// allows asks Allow.
func (t *Target) allows(method string, params any) error {
	if t.Allow == nil {
		return nil
	}
	raw, err := strictjson.Marshal(params)
	if err != nil {
		return Internal(err)
	}
	return t.Allow(method, mcp.RawValue(raw))
}
