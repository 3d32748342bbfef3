// Package revision holds everything that differs between revisions of the
// protocol as data: one row of named facts per revision. It is the only place
// that knows dates; all other code asks for a fact by its name, never whether
// a version is newer than another.
//
// A new revision is a row here and a file in package shape.
package revision

// Facts is the row of one revision. It must not be written to.
type Facts struct {
	// Version is the revision's name on the wire.
	Version string

	// Handshake: a connection begins with initialize and has state. Otherwise
	// the revision is stateless and each request says all that is needed.
	Handshake bool
	// Batch: JSON-RPC arrays are messages.
	Batch bool
	// Sessions: Streamable HTTP has sessions (Mcp-Session-Id, DELETE) and a GET
	// stream.
	Sessions bool
	// Resume: streams have event ids and are resumed with Last-Event-ID.
	Resume bool
	// Priming: a resumable stream begins with an empty event and may end early
	// with retry.
	Priming bool
	// VersionHeader: HTTP requests after negotiation carry MCP-Protocol-Version.
	VersionHeader bool
	// Assumed: HTTP requests without MCP-Protocol-Version, and with nothing else
	// that tells their revision, are of this one.
	Assumed bool
	// RouteHeaders: HTTP requests carry Mcp-Method, Mcp-Name, Mcp-Param-*.
	RouteHeaders bool
	// NullID: an error for a message whose id could not be read carries
	// "id": null; otherwise it has no id.
	NullID bool

	// ResultType: results say their type.
	ResultType bool
	// MetaVersion: requests carry version, capabilities and client in _meta,
	// results the server.
	MetaVersion bool
	// RequiredMeta: the members that _meta of each request must have.
	RequiredMeta []string
	// InputRequired: a server asks by answering input_required; otherwise it
	// sends requests.
	InputRequired bool
	// Cacheable: list and read results carry ttlMs and cacheScope.
	Cacheable bool
	// LogPerRequest: the log level is in the request's _meta; otherwise it is
	// set for the session.
	LogPerRequest bool
	// ListenStreams: changes are told on subscriptions/listen; otherwise on
	// the connection.
	ListenStreams bool

	// InputErrorsAreResults: arguments that do not fit a tool's schema give a
	// result with isError, which the model reads; otherwise -32602.
	InputErrorsAreResults bool
	// StructuredOutput: tools have outputSchema and structuredContent.
	StructuredOutput bool
	// StructuredAny: these may be of any type; otherwise objects only.
	StructuredAny bool
	// ToolAnnotations: tools have annotations.
	ToolAnnotations bool
	// Titles: tools, prompts, resources, implementations have title.
	Titles bool
	// Icons: they have icons; implementations have description and websiteUrl.
	Icons bool
	// MetaEverywhere: content, tools, resources, prompts, roots have _meta.
	MetaEverywhere bool
	// LastModified: annotations have lastModified.
	LastModified bool
	// Audio: content may be audio.
	Audio bool
	// ResourceLinks: content may be a resource link.
	ResourceLinks bool
	// ProgressMessage: progress has a message.
	ProgressMessage bool

	// CompletionCapability: servers declare completions; otherwise completion
	// is served without.
	CompletionCapability bool
	// CompletionContext: completion/complete has context.
	CompletionContext bool

	// ElicitForm: users can be asked with a form.
	ElicitForm bool
	// ElicitModes: elicitation has modes: requests say theirs, clients declare
	// theirs.
	ElicitModes bool
	// ElicitURL: users can be sent to a URL.
	ElicitURL bool
	// ElicitID: URL elicitations have an elicitationId.
	ElicitID bool
	// URLRequiredError: -32042 says that URL elicitations come first.
	URLRequiredError bool
	// FormEnums: forms have titled (oneOf) and multiple choices; otherwise
	// enum and enumNames.
	FormEnums bool
	// FormDefaults: strings, numbers and choices in forms have defaults;
	// otherwise only booleans.
	FormDefaults bool

	// SamplingTools: sampling has tools, tool choice, tool use and results,
	// and declares sub-capabilities.
	SamplingTools bool
	// SamplingLists: a sampling message may have several blocks.
	SamplingLists bool
	// SamplingMeta: a sampling message has _meta.
	SamplingMeta bool
	// RootsChanged: clients send notifications/roots/list_changed.
	RootsChanged bool
	// Rejections: a client answers refused sampling and roots with error -1.
	Rejections bool

	// Tasks: tasks are part of the core, as an experiment; otherwise they are an
	// extension's.
	Tasks bool

	// NotFoundCode is the code for a resource that does not exist.
	NotFoundCode int64

	bit rows
}

// What a transport must know of a message to find its revision. These are names
// of package mcp, which no transport imports; a test compares them.
const (
	// MetaVersionKey is the member of a request's _meta that names a revision
	// without handshake.
	MetaVersionKey = "io.modelcontextprotocol/protocolVersion"
	// Initialize is the method that opens a relation of a revision with one,
	// and Initialized the notification by which the client agrees.
	Initialize  = "initialize"
	Initialized = "notifications/initialized"
)

// Has reports whether the revision has the method.
func (f *Facts) Has(method string) bool { return methods[method]&f.bit != 0 }

// Stateful reports whether a request of this method changes what a session
// holds: a session is what these requests have made of it.
func Stateful(method string) bool { return stateful[method] }

// HTTPStatus is the status of the HTTP response that carries a JSON-RPC error
// with this code as its only message. A request without the metadata that it
// must have is 400 whatever its code: its admission knows, not this table.
func (f *Facts) HTTPStatus(code int64) int {
	switch code {
	case codeParse, codeInvalidRequest:
		return 400
	case codeInsufficientScope:
		return 403 // a rule of OAuth, whatever the revision (basic/authorization)
	}
	if f.Handshake {
		return 200
	}
	if status, ok := statuses[code]; ok {
		return status
	}
	return 200
}

// Lookup returns the row of a version.
func Lookup(version string) (*Facts, bool) {
	for i := range all {
		if all[i].Version == version {
			return &all[i], true
		}
	}
	return nil, false
}

// Newest returns the newest revision.
func Newest() *Facts { return &all[0] }

// NewestHandshake returns the newest revision that has a handshake.
func NewestHandshake() *Facts {
	for i := range all {
		if all[i].Handshake {
			return &all[i]
		}
	}
	return nil
}

// Assumed returns the revision of an HTTP request that does not tell its own
// (spec 2025-11-25, basic/transports, Protocol Version Header).
func Assumed() *Facts {
	for i := range all {
		if all[i].Assumed {
			return &all[i]
		}
	}
	return nil
}

// All returns all revisions, newest first, in a new slice.
func All() []*Facts { return choose(func(*Facts) bool { return true }) }

// Modern returns the revisions without handshake, newest first, in a new slice.
func Modern() []*Facts { return choose(func(f *Facts) bool { return !f.Handshake }) }

// Handshakes returns the revisions with handshake, newest first, in a new slice.
func Handshakes() []*Facts { return choose(func(f *Facts) bool { return f.Handshake }) }

func choose(keep func(*Facts) bool) []*Facts {
	var list []*Facts
	for i := range all {
		if keep(&all[i]) {
			list = append(list, &all[i])
		}
	}
	return list
}
