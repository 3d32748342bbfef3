package config

import (
	"strings"
	"time"

	"github.com/parley-mcp/parley/policy"
)

// A Transport is how a server is reached.
type Transport string

// The transports.
const (
	TransportStdio       Transport = "stdio"
	TransportHTTP        Transport = "http" // Streamable HTTP; HTTP+SSE if the server has nothing newer
	TransportSSE         Transport = "sse"  // HTTP+SSE alone
	TransportWebSocket   Transport = "websocket"
	TransportUnsupported Transport = "unsupported" // such as a part of the other client; Err says which
)

// A Server is one entry. Texts are as they were written, with variables in them; Expand
// makes the entry that is started.
type Server struct {
	Name      string
	Source    Source
	Transport Transport

	// Command and Args are the process of a stdio server. The command is no shell text.
	Command string
	Args    []string
	// Env is added to the environment of the process. It may hold secrets.
	Env map[string]string
	// EnvFile is the file of variables as it was written, EnvFileNames are those in it. They
	// come before Env, which wins.
	EnvFile      string
	EnvFileNames []string
	// Dir is the folder of the process; empty is the folder in which Parley runs.
	Dir string

	// URL is the address of any other server. It may hold secrets.
	URL string
	// Headers are sent with each request, in this order. They may hold secrets.
	Headers []Header
	// OAuth is what authorization needs beyond what the server tells, or nil.
	OAuth *OAuth
	// NoOAuth says that no authorization is to be begun: the entry says so, or sets the
	// header Authorization by hand.
	NoOAuth bool

	// ConnectTimeout bounds the time until a server is ready, CallTimeout that of one
	// call. Zero is the program's default.
	ConnectTimeout, CallTimeout time.Duration
	// Versions are the protocol versions to speak, or "modern" or "legacy"; empty is all.
	Versions []string

	// Disabled says that the person has switched the entry off.
	Disabled bool
	// AllowTools are globs of the only tools that are offered; empty is all.
	AllowTools []string
	// DenyTools are globs of tools that are not offered.
	DenyTools []string
	// Trusted says that the person believes what the server says about its tools.
	Trusted bool
	// Labels are on everything that the server gives or takes.
	Labels []policy.Label
	// ToolLabels are on single tools beside Labels.
	ToolLabels []ToolLabels

	// Roots are those of the entry alone, which count where one server is inspected.
	Roots []Root

	// Inputs are what the person is to be asked before the entry can be started.
	Inputs []Input
	// Digest names what would be started: command, arguments, folder, names and values of
	// the environment, URL and headers. Consent to an entry of a project is for one digest.
	Digest string
	// NeedsConsent says that others wrote the entry.
	NeedsConsent bool
	// Shadowed are entries of the same name that do not count, because of this one.
	Shadowed []Source
	// Notes are what a person may want to know, such as a timeout that was in seconds.
	Notes []string
	// Err says why the entry cannot be started, and what to do; nil if it can.
	Err error

	plan *plan
	// hidesOwn says that others wrote the entry, and that the person has a different one of
	// that name.
	hidesOwn bool
}

// A Root is a folder that a server is told of.
type Root struct{ URI, Name string }

// A Header is one header of HTTP requests.
type Header struct{ Name, Value string }

// OAuth is what a person registered by hand. Empty fields are found out by discovery.
type OAuth struct {
	ClientID, ClientSecret string
	Scopes                 []string
	// CallbackPort is the port of the address to which the browser returns.
	CallbackPort int
	// MetadataURL is where the authorization server describes itself.
	MetadataURL string
}

// ToolLabels are the labels of tools whose names match a glob.
type ToolLabels struct {
	Tools  string
	Labels []policy.Label
}

// An Input is a value that the person is asked for.
type Input struct {
	// ID is the key of Expand's argument.
	ID          string
	Description string
	// Password says that the value is not to be shown while it is typed.
	Password bool
	// Default is offered, and taken where Expand is given nothing.
	Default string
	// Options are the only values; empty is any.
	Options []string
}

// Address is the command with its arguments, or the URL, as it was written and fit for a
// list: what looks like a secret is left out.
func (s *Server) Address() string {
	if s.Command != "" || s.Transport == TransportStdio {
		return strings.Join(append([]string{s.Command}, RedactArgs(s.Args)...), " ")
	}
	return redactURL(s.URL)
}

// note adds a note.
func (s *Server) note(text string) { s.Notes = append(s.Notes, text) }

// fail sets Err, which keeps the first reason.
func (s *Server) fail(err error) {
	if s.Err == nil {
		s.Err = err
	}
}
