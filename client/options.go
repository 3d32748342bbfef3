package client

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/mcp"
)

// Options configure a client. The zero value, and nil, work: a client that
// calls, declares no capability and answers no question.
//
// A handler that is nil leaves its capability undeclared, and the server is
// refused what it did not get told about. Handlers may be called by many
// goroutines at once. Their context ends when the server withdraws the
// question, the call that it belongs to ends, or the client is closed.
type Options struct {
	// Info is what the client says about itself; default "parley-client".
	// Nothing is decided by it.
	Info mcp.Implementation
	// HideInfo leaves Info out where the revision allows that. In the
	// handshake, which requires it, an anonymous name is sent.
	HideInfo bool

	// OnElicit shows a form to the person (capability elicitation.form).
	// Use [Accept], [Decline] and [CancelElicit] for the answer. An error, or
	// an answer that does not fit the form, refuses the question: the call ends
	// with [ErrInputRefused] in stateless revisions. In those with a handshake
	// the server is told, but not why, unless the error is made for it
	// (mcp.Errorf), and goes on as it likes; Logger has a warning. So it is with
	// the other handlers.
	OnElicit func(ctx context.Context, r *ElicitRequest) (*mcp.ElicitResult, error)
	// OnElicitURL asks the person to visit a page (capability
	// elicitation.url). The handler must show the whole address, must not
	// fetch it, and must not open it without consent. Accepting means
	// consent, not that the visit is over.
	OnElicitURL func(ctx context.Context, r *ElicitRequest) (*mcp.ElicitResult, error)
	// URLWait is how long a call of 2025-11-25 that was refused until a page
	// was visited waits for the server's word that it was, before it is
	// tried again; default 60 s.
	URLWait time.Duration
	// OnSample calls the model for the server (capability sampling). Return
	// an error that wraps [ErrRefused] when the person says no.
	//
	// Deprecated: sampling is deprecated since the newest revision; servers
	// should call a model themselves.
	OnSample func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)
	// SampleTools declares that OnSample can offer tools to the model.
	SampleTools bool
	// SampleContext declares that OnSample can include the context of
	// servers.
	SampleContext bool
	// OnRoots tells the server which folders it should work in (capability
	// roots). All of them must be file: URIs.
	//
	// Deprecated: roots are deprecated since the newest revision; pass
	// folders as arguments or configuration of the server.
	OnRoots func(ctx context.Context) ([]mcp.Root, error)
	// OnQuestion is called when a request of a server with a handshake arrives,
	// before anything behind it on the connection is read. The context that it
	// returns, which must be derived from ctx, is that of the request's handler;
	// nil, and a panic, leave that as it is. It must not wait. Default none.
	OnQuestion func(ctx context.Context, method string) context.Context

	// OnLog takes the server's log messages, in order, one at a time. It may call
	// the client. Where more than 64 MiB wait for it, OnElicitationComplete,
	// OnNotification and those of Extensions together, what comes is dropped; Logger
	// is told how many.
	OnLog func(ctx context.Context, p *mcp.LogParams)
	// LogLevel is the least severe level the server should send; default
	// info if OnLog is set, otherwise nothing is said about it.
	LogLevel mcp.LogLevel
	// OnToolsChanged, OnPromptsChanged and OnResourcesChanged are told that
	// a list has changed, or may have while the connection was down. Notices
	// that come faster than the handler works become one. What was kept of
	// the list is forgotten already.
	OnToolsChanged, OnPromptsChanged, OnResourcesChanged func(ctx context.Context)
	// OnResourceUpdated is told that a resource which [Client.Subscribe]
	// watches, or one beneath it, has changed or may have.
	OnResourceUpdated func(ctx context.Context, uri string)
	// OnElicitationComplete is told that the person has finished what a page
	// of OnElicitURL was for (revision 2025-11-25).
	OnElicitationComplete func(ctx context.Context, id string)
	// OnNotification takes notifications that are neither of the core protocol nor of
	// one of Extensions, in order, as they come: nothing says that they were asked
	// for. Without it they are dropped, and the log says so at level debug.
	OnNotification func(ctx context.Context, method string, params mcp.RawValue)

	// OnProblem is called once for each part of an answer that was wrong and was left out or replaced,
	// before the request returns; see [Client.Problems]. After 1,000 parts one more call says that there
	// are others. The request waits for it. It must not send requests while the client connects, nor with
	// OneAtATime those of another context than ctx: they would wait for the one that waits for it.
	OnProblem func(ctx context.Context, p *Problem)

	// Middleware wraps each request, the first outermost; default none.
	Middleware []Middleware
	// Observers are told of sessions; default none.
	Observers []Observer
	// OnDisconnect is told once that the connection ended by itself, and why, and
	// leaves it to the caller to make another client: this one does not connect again,
	// and whatever is asked of it fails with [ErrDisconnected]. It must not wait, and
	// must not call the client. Over Streamable HTTP it is not called: each request
	// connects by itself there, and a session that the server has forgotten is opened
	// again. Default: the client connects again when it is next used.
	OnDisconnect func(err error)
	// OneAtATime makes requests of the handshake era wait for each other, so
	// that it is known which one a question of the server belongs to also where
	// the transport does not tell: on pipes and with HTTP+SSE. See RequestFrom. A
	// handler that calls the client in its own context does not wait; in another
	// one it waits for the call that waits for it, for ever if that has no end.
	OneAtATime bool

	// Versions are the revisions that may be used; default all. One pins
	// it. The newest that suits both sides is taken.
	Versions []string
	// Eras remembers which revision a server spoke, so that an old server is
	// not probed each time; default a memory of this process.
	Eras EraMemory

	// CallTimeout is how long a call may be silent; default 60 s. Progress and
	// each part of a long answer restart it, and it is paused while a person is
	// asked. Comments and pings do not restart it. Negative means for as long as
	// MaxCallTime allows.
	CallTimeout time.Duration
	// MaxCallTime is how long a call may take in all, without the time that
	// persons take; default 10 min, and a negative one is no limit.
	MaxCallTime time.Duration
	// ConnectTimeout is CallTimeout for the requests with which a connection begins;
	// default CallTimeout.
	ConnectTimeout time.Duration
	// DiscoverProbe is how long a server may be silent to the first request
	// before it is taken for one of the handshake era; default 5 s, and never
	// longer than ConnectTimeout. If it answers the handshake, it may only have
	// been slow to start, and is probed again. A server that is silent to the
	// handshake too makes Connect fail after DiscoverProbe and ConnectTimeout
	// together.
	DiscoverProbe time.Duration
	// Retries is how often a request is sent again that the server refused
	// before it ran, because there were too many: the codes -31001 and -31002
	// and the HTTP status 429. What may have run is repeated only if doing it
	// twice is harmless: lists, reads, prompts, completion, and tools as
	// TrustAnnotations says. That is a request of which progress or a question
	// was heard before it was refused, or one that got a bare 503, which a proxy
	// may send after it has run. The
	// client waits as long as the server asks, if the time of the call and one
	// minute allow that; requests that wait for the same limit go one after
	// another. In the end the error is a [RetryError]. Default 5; -1 means
	// that nothing is sent again.
	Retries int
	// MaxRounds is how often a server may ask within one call; default 8.
	MaxRounds int
	// MaxInFlight is how many questions of the server are open at once;
	// default 256. The rest are refused.
	MaxInFlight int
	// MaxItems is how many items of one list are read, and how many pages;
	// default 10,000.
	MaxItems int
	// MaxListBytes is how many bytes of one list are read, all its pages
	// together, and how many bytes of tools' schemas are kept; default 16 MiB.
	MaxListBytes int

	// Cache keeps results for as long as the server allows; default a cache
	// of its own with the bounds below. Clients may share one.
	Cache *Cache
	// CacheEntries and CacheBytes bound the default cache; defaults 1,000
	// and 16 MiB. A negative value keeps nothing.
	CacheEntries, CacheBytes int
	// Principal names on whose behalf the client acts: what the cache holds
	// for one principal is never shown to another unless the server calls it
	// public. A client is one person's; only when a person signs in anew, and
	// the transport says so (see transport.PauseTimeouts), it forgets what was the
	// person's alone. Default: a principal of its own, so that clients that
	// share a cache share nothing but what is public.
	Principal string

	// TrustAnnotations believes the server's tool annotations, so far as to
	// repeat a call by itself after a broken connection if the tool is
	// marked read-only or idempotent.
	TrustAnnotations bool
	// Extensions are the extensions of the protocol that the client knows: they are
	// declared, and what they define works as what the core defines.
	Extensions []Extension
	// Experimental are experimental capabilities to declare.
	Experimental map[string]mcp.RawValue

	// Logger logs what goes wrong but is returned by no method; default
	// none.
	Logger *slog.Logger
}

// CallOptions configure one request. The zero value, and nil, work.
type CallOptions struct {
	// OnProgress is told about progress, in order, one at a time; all of it
	// before the call returns. Where more than 4 MiB of it wait, the latest
	// takes the place of the one before. Total is 0 if unknown. It may call the
	// client, but must not wait for the call.
	OnProgress func(progress, total float64, message string)
	// Timeout replaces Options.CallTimeout; it may be longer than
	// MaxCallTime.
	Timeout time.Duration
	// NoTimeout waits for as long as the context lasts.
	NoTimeout bool
	// Meta goes into _meta. Reserved keys are refused.
	Meta map[string]mcp.RawValue
	// NoCache asks the server, whatever is kept, and keeps nothing of the answer.
	NoCache bool
	// ResultTypes are types of results that the caller understands besides
	// the core's, as extensions define them; no extension of Options.Extensions
	// settles them then. The caller decodes into a RawValue with [Client.Request].
	ResultTypes []string
	// Capabilities are declared in the place of those of the client, in
	// stateless revisions, where each request declares them: for a proxy, whose
	// callers differ. What the client has no handler for the caller answers
	// itself, with ResultTypes. Extensions and experimental capabilities are
	// those of the client. Default: what the client has handlers for.
	Capabilities *mcp.ClientCapabilities
}

// An EraMemory remembers the revision that each server spoke last. It may be
// used by many goroutines at once.
type EraMemory interface {
	// Recall returns the revision remembered under a dialer's key, if any.
	Recall(key string) (version string, ok bool)
	// Remember keeps a revision, or forgets the key if version is empty.
	Remember(key, version string)
}

// defaults fills in what was left out.
func (o *Options) defaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Info.Name == "" {
		r.Info.Name = "parley-client"
	}
	r.Info.Version = cmp.Or(r.Info.Version, "devel")
	if r.OnLog != nil {
		r.LogLevel = cmp.Or(r.LogLevel, mcp.LogInfo)
	}
	r.URLWait = cmp.Or(r.URLWait, time.Minute)
	r.CallTimeout = cmp.Or(r.CallTimeout, time.Minute)
	r.MaxCallTime = cmp.Or(r.MaxCallTime, 10*time.Minute)
	r.ConnectTimeout = cmp.Or(r.ConnectTimeout, r.CallTimeout)
	r.DiscoverProbe = cmp.Or(r.DiscoverProbe, 5*time.Second)
	r.Retries = cmp.Or(r.Retries, 5)
	r.MaxRounds = cmp.Or(r.MaxRounds, 8)
	r.MaxInFlight = cmp.Or(r.MaxInFlight, 256)
	r.MaxItems = cmp.Or(r.MaxItems, 10_000)
	r.MaxListBytes = cmp.Or(r.MaxListBytes, 16<<20)
	if r.Cache == nil {
		r.Cache = NewCache(r.CacheEntries, r.CacheBytes)
	}
	if r.Eras == nil {
		r.Eras = processEras
	}
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	for _, v := range r.Versions {
		if _, ok := revision.Lookup(v); !ok {
			return r, fmt.Errorf("client options: unknown protocol version %q in Versions", v)
		}
	}
	return r, nil
}

// capabilities are what the client declares beside extensions: exactly what it has
// handlers for.
func (o *Options) capabilities() *mcp.ClientCapabilities {
	c := &mcp.ClientCapabilities{Experimental: o.Experimental}
	if o.OnElicit != nil || o.OnElicitURL != nil {
		c.Elicitation = &mcp.ElicitationCapability{}
		if o.OnElicit != nil {
			c.Elicitation.Form = mcp.Settings{}
		}
		if o.OnElicitURL != nil {
			c.Elicitation.URL = mcp.Settings{}
		}
	}
	if o.OnSample != nil {
		c.Sampling = &mcp.SamplingCapability{}
		if o.SampleTools {
			c.Sampling.Tools = mcp.Settings{}
		}
		if o.SampleContext {
			c.Sampling.Context = mcp.Settings{}
		}
	}
	if o.OnRoots != nil {
		c.Roots = &mcp.RootsCapability{ListChanged: true}
	}
	return c
}
