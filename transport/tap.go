package transport

import (
	"net/http"
	"time"
)

// A Tap is shown what the links of a dialer carry, as it is on the wire: for
// tools that trace, record or measure a connection. It is called by many
// goroutines at once, in the order of what happens on each stream, and holds
// up the connection for as long as it takes. It may not keep or write to Data
// and Header. What it is shown holds secrets: tokens in headers, arguments,
// results, addresses.
type Tap func(e TapEvent)

// A TapKind says what a TapEvent shows.
type TapKind uint8

// The kinds of events.
const (
	// TapStep is a step of making a connection: Name says which one, Detail
	// with whom, Took how long it took and Err that it failed.
	TapStep TapKind = iota + 1
	// TapRequest is the head of an HTTP request, with its body in Data where
	// that can be read twice.
	TapRequest
	// TapResponse is the head of an HTTP response.
	TapResponse
	// TapBody is a part of the body of an HTTP response, as it was read; messages in it
	// are shown by TapReceived, too. Its last event has Err, io.EOF where the body is whole.
	TapBody
	// TapSent is one message to the server, or a JSON array of several, just
	// before it is written.
	TapSent
	// TapReceived is one message of the server, or a JSON array of several:
	// what the codec is given, well-formed or not. An event of a stream that
	// has an id and no message has no Data.
	TapReceived
	// TapRefused is what is no message, with the reason in Err. Of what is
	// longer than the limit, Data is the beginning.
	TapRefused
	// TapStderr is what a child process wrote on standard error, as it came.
	TapStderr
	// TapClosed is the end of a link, with the reason in Err where the link was
	// not closed from this side.
	TapClosed
)

// tapKinds are the names of the kinds.
var tapKinds = [...]string{
	TapStep: "step", TapRequest: "request", TapResponse: "response", TapBody: "body", TapSent: "sent",
	TapReceived: "received", TapRefused: "refused", TapStderr: "stderr", TapClosed: "closed",
}

// String is the name of the kind, such as "sent".
func (k TapKind) String() string {
	if int(k) >= len(tapKinds) || k == 0 {
		return "unknown"
	}
	return tapKinds[k]
}

// Names of the steps of a connection.
const (
	StepProcess = "process" // a child process has started; Detail is its id
	StepDNS     = "dns"     // a name was looked up; Detail is the name and its addresses
	StepTCP     = "tcp"     // a connection was made; Detail is the address
	StepTLS     = "tls"     // it was secured; Detail is the version of TLS and the protocol within
	StepReused  = "reused"  // a connection that waited is used again; Detail is its address
	StepExit    = "exit"    // the child process has ended; Detail says how
)

// A TapEvent is one thing that happened on a link.
type TapEvent struct {
	Kind TapKind
	// Time is when it happened.
	Time time.Time
	// Link numbers the links of this process, from 1. It is 0 for HTTP requests
	// that belong to none, such as those of authorization.
	Link uint64
	// Exchange numbers the HTTP exchanges of this process, from 1: what is sent,
	// received, and the heads and steps that belong to one message have the same. An exchange
	// that is authorized, redirected or tried again has several requests. It is
	// 0 where a transport has no exchanges.
	Exchange uint64
	// Data are bytes, see the kinds. They are void once the tap has returned.
	Data []byte
	// EventID is the id of the event that the message came in, if it has one.
	EventID string
	// Name is that of a step.
	Name string
	// Detail says more of a step, for a person.
	Detail string
	// Took is how long a step took.
	Took time.Duration
	// Method and URL are those of an HTTP request; Status that of a response,
	// Proto its protocol, such as "HTTP/1.1". Header belongs to either.
	Method, URL, Proto string
	Status             int
	Header             http.Header
	// Err is why something failed or ended.
	Err error
}
