// Package transport defines the interfaces between the protocol core and
// transports. A transport (stdio, Streamable HTTP, WebSocket, memory)
// knows framing, connections and streams; it knows no MCP feature. The core
// (package server, package client) knows features and eras; it knows no socket.
//
// On the server side a transport holds a [Handler] and gives it [Exchange]s. On
// the client side a [Dialer] gives a [Link].
package transport

import (
	"context"
	"errors"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
)

// Errors that every transport uses, to be found with errors.Is.
var (
	// ErrClosed says that the connection has been closed, by either end.
	ErrClosed = errors.New("connection closed")
	// ErrStalled says that the peer did not take our bytes within WriteStall.
	ErrStalled = errors.New("peer does not read")
	// ErrInterrupted says that the connection ended while a request was
	// under way: the peer may have carried it out or not.
	ErrInterrupted = errors.New("connection ended before the answer; the request may have run")
	// ErrOtherTransport says that the server did not understand the handshake
	// and may speak another transport: what [First] goes by.
	ErrOtherTransport = errors.New("the server does not speak this transport")
	// ErrNotUnderstood says that the server refused a request of a stateless
	// revision before it looked into it, and not in the protocol's words:
	// nothing was carried out, and it may speak older revisions only.
	ErrNotUnderstood = errors.New("the server did not understand the request")
	// ErrDenied says that the server, or a guard in front of it, refused this
	// caller: nothing was carried out, and neither the transport nor the
	// revision is the reason. A program that signs a person in may return it,
	// wrapped, for an attempt that has failed.
	ErrDenied = principal.ErrDenied
)

// A Handler is the receiving end of a protocol: a server, a gateway, a test.
// Its methods may be called by many goroutines at once.
type Handler interface {
	// Serve handles one self-contained request, which belongs to no
	// connection (see Exchange.Version), and returns when it has been answered or abandoned. It
	// answers through x.Out. The end of ctx is the peer's going away.
	Serve(ctx context.Context, x *Exchange)
	// Open begins a relation with a peer that will be back: a pipe, a
	// WebSocket, a legacy HTTP session. An error refuses the peer; a
	// *jsonrpc.Error among it is what the peer is told.
	Open(c Conn) (Session, error)
	// Refused is told of what the transport refused by itself, so that it can be
	// counted, before the peer is: what is no message, is too long, or belongs to no session, and
	// sessions that are one too many. It must be quick, and must not wait for
	// the peer.
	Refused(ctx context.Context, r Refusal)
}

// A Refusal is a request, or an invalid message, that was refused before it was
// handled.
type Refusal struct {
	// Err is what the peer is told. Err.Limit names the limit that it was over,
	// if it was over one.
	Err *jsonrpc.Error
	// Method is the method of the request, which the peer may have made up; ""
	// where none could be read.
	Method string
	// Principal is the sender, nil where that is not known.
	Principal *principal.Principal
	// Transport describes its transport, nil where that is not known.
	Transport *Info
}

// A Session is the handler's half of a long-lived relation. The transport calls
// Begin and Accept in the order in which messages arrived; neither blocks on
// the peer, so that a cancellation always finds the request it follows.
//
// Begin is separate from run because messages on a pipe can depend on their order: a cancellation names
// an earlier request, and a second request with the ID of one in flight must be rejected. If Begin ran on
// the request's own goroutine, a cancellation that follows closely could arrive first and be lost. Begin
// delays the messages behind it, so it only tracks requests and checks limits.
type Session interface {
	// Begin admits one request. The transport calls run, on a goroutine of its
	// choice, to have it handled; run returns when the request has been
	// answered or abandoned. A nil run says that the request is refused and
	// has been answered already. The end of ctx is the connection's end.
	// The transport must call run exactly once: without it the request stays tracked, and Close
	// waits for it.
	Begin(ctx context.Context, x *Exchange) (run func())
	// Accept takes a notification or a response.
	Accept(m *jsonrpc.Incoming)
	// Rules says what the relation allows now. It changes with negotiation.
	Rules() Rules
	// Ending says, once, that the peer will send no more. What would go on for
	// as long as it listens should end; requests in flight may finish.
	Ending()
	// Close ends the relation: requests in flight are cancelled with cause,
	// and waited for.
	Close(cause error)
}

// Rules are what a transport must know of the negotiated revision.
type Rules struct {
	// Version is the negotiated revision, empty before negotiation.
	Version string
	// Serves are the other versions with a handshake that a message may name
	// (MCP-Protocol-Version); the relation stays in the negotiated one. Nil
	// means all that the transport knows. It must not be written to.
	Serves []string
	// Batch says that JSON-RPC arrays are allowed.
	Batch bool
	// MaxBatch is the most messages that one array may hold.
	MaxBatch int
	// NullID says that an error for a message whose id could not be read
	// carries "id": null. Without it the member is left out.
	NullID bool
}

// A Conn is the transport's half of a long-lived relation: what belongs to no
// exchange. Its methods may be called by many goroutines at once.
type Conn interface {
	jsonrpc.Sender
	// Principal is the principal of the peer.
	Principal() *principal.Principal
	// Shared says that answers, notifications and requests of all exchanges
	// travel in one channel, as on a pipe: the receiver tells them apart by
	// content, and cancellation needs a message. Otherwise each exchange has
	// a stream of its own.
	Shared() bool
	// Close ends the connection; pending sends fail with cause.
	Close(cause error) error
}

// An Exchange is one request on its way to an answer. It is never reused.
type Exchange struct {
	In        *jsonrpc.Incoming
	Route     Route
	Principal *principal.Principal
	Out       Responder
	// Transport describes the transport; nil if that is not known.
	Transport *Info
	// Version is the revision, one with a handshake, of a request that belongs
	// to no session: a transport that keeps none gives such requests to
	// Handler.Serve, initialize among them. Empty means that a request without
	// session is of a revision without handshake, and says its own.
	Version string
	// Batched says that the request came as an element of a JSON-RPC array.
	Batched bool
	// AnswerOnly says that the peer takes nothing but the answer, as a client does whose Accept
	// header names JSON only. Out drops notifications, and refuses requests.
	AnswerOnly bool
	// Ending is closed when the transport is about to end although the peer is
	// still there: what would go on for as long as the peer listens should
	// end in good order. It is nil for exchanges of a session, which has
	// Session.Ending, and where that is not known.
	Ending <-chan struct{}
}

// Info describes the transport of exchanges. It never changes, and all
// exchanges of a connection or a session share it.
type Info struct {
	// Name is the kind of transport: "stdio", "http", "sse", "websocket",
	// "memory", or another for transports of users.
	Name string
	// SessionID is what the client and the transport call the session; empty
	// where sessions have no name, and without one. It lets its holder use the
	// session: it is for telling sessions apart, not for logs.
	SessionID string
}

// A Responder sends what belongs to one exchange: notifications and requests
// first, then one answer. Its methods may be called by many goroutines at once.
type Responder interface {
	// Send sends a notification or request that belongs to the exchange. It
	// waits for room. After Answer it fails with jsonrpc.ErrEnded.
	jsonrpc.Sender
	// Answer sends the response. The second call fails with
	// jsonrpc.ErrEnded and sends nothing.
	Answer(ctx context.Context, m *jsonrpc.Outgoing) error
}

// A Route is what a transport says about a message outside its body: the HTTP
// headers. Only the core compares it with the body, or fills it in.
type Route struct {
	// Carried says that the transport has such a place.
	Carried bool
	// Version is the value of MCP-Protocol-Version; Method that of
	// Mcp-Method; Name that of Mcp-Name, decoded. Empty means that there is
	// none.
	Version, Method, Name string
	// Fields are the values of Mcp-Param-* headers, decoded, by the part of
	// the header's name after the prefix. What arrives has it in lower case;
	// what is sent may have any case.
	Fields map[string][]string
	// Invalid says, for a person, why the headers of a message that arrived
	// cannot be read: one is there twice, or its base64 is none. Empty means
	// that they can.
	Invalid string
}

// A Dialer makes connections to one server. It may be used more than once and
// by many goroutines.
type Dialer interface {
	// Dial connects. What arrives outside an answer goes to in, also after
	// Dial has returned, until the link is closed. The end of ctx ends the
	// dialling, not the link.
	Dial(ctx context.Context, in Inbox) (Link, error)
	// Key names the server for memories that outlive a link: its era, its
	// cached lists. Two dialers of the same server give the same key; an
	// empty key means that nothing is to be remembered.
	Key() string
}

// An Inbox takes what a server sends outside of answers: notifications,
// requests, and responses that no request waits for. Receive is called in the
// order of arrival and may block the connection: that is the back-pressure.
type Inbox interface {
	Receive(m *jsonrpc.Incoming)
	// Closed tells, once, that the link has ended, and why.
	Closed(err error)
}

// A Link is a connection to a server. Its methods may be called by many
// goroutines at once.
type Link interface {
	// Do sends a request and waits for its response. If ctx ends first, Do
	// returns its cause and forgets the request; see Traits.Abandons. An
	// error answer of the peer is in the message, not in the error.
	Do(ctx context.Context, m *jsonrpc.Outgoing, r Route) (*jsonrpc.Incoming, error)
	// Post sends a notification or a response.
	Post(ctx context.Context, m *jsonrpc.Outgoing, r Route) error
	// Establish tells the link what the core negotiated.
	Establish(ctx context.Context, e Established) error
	// Traits say what the link does by itself. They do not change once
	// Establish has returned.
	Traits() Traits
	// Close ends the link and returns once nothing of it is left: no
	// goroutine, no process. The end of ctx makes it less polite, not longer.
	Close(ctx context.Context) error
}

// Traits are what a link does by itself.
type Traits struct {
	// Abandons says that ending Do's context tells the server by itself
	// (modern Streamable HTTP). Otherwise the client sends
	// notifications/cancelled.
	Abandons bool
	// Routes says that the link carries a Route.
	Routes bool
	// Session is the id of the session that the server gave to the link, if
	// the transport has such a thing. It is a secret.
	Session string
}

// Established is the outcome of negotiation.
type Established struct {
	// Version is the negotiated revision.
	Version string
	// Handshake says that the revision has sessions and an initialize
	// handshake; otherwise it is stateless.
	Handshake bool
}
