package revision

// rows is a set of revisions.
type rows uint8

// One bit for each revision.
const (
	in20241105 rows = 1 << iota
	in20250326
	in20250618
	in20251125
	in20260728
)

// Sets of revisions that methods belong to.
const (
	inHandshake = in20241105 | in20250326 | in20250618 | in20251125
	inAll       = inHandshake | in20260728
)

// The codes that have a meaning here. They are those of package mcp, which this
// leaf does not import; a test compares them.
const (
	codeParse             = -32700
	codeInvalidRequest    = -32600
	codeMethodNotFound    = -32601
	codeInvalidParams     = -32602
	codeHeaderMismatch    = -32020
	codeMissingCapability = -32021
	codeVersion           = -32022
	codeNotFound          = -32002
	codeRateLimited       = -31001
	codeTooManyInFlight   = -31002
	codeShuttingDown      = -31004
	codeInsufficientScope = -31006
)

// statuses are the HTTP statuses of errors in stateless revisions; 200 for all
// other codes (basic/transports/streamable-http).
var statuses = map[int64]int{
	codeMethodNotFound:    404,
	codeHeaderMismatch:    400,
	codeMissingCapability: 400,
	codeVersion:           400,
	codeRateLimited:       429,
	codeTooManyInFlight:   429,
	codeShuttingDown:      503,
}

// all are the revisions, newest first.
var all = [...]Facts{
	{
		Version:               "2026-07-28",
		VersionHeader:         true,
		RouteHeaders:          true,
		ResultType:            true,
		MetaVersion:           true,
		RequiredMeta:          []string{MetaVersionKey, "io.modelcontextprotocol/clientCapabilities"},
		InputRequired:         true,
		Cacheable:             true,
		LogPerRequest:         true,
		ListenStreams:         true,
		InputErrorsAreResults: true,
		StructuredOutput:      true,
		StructuredAny:         true,
		ToolAnnotations:       true,
		Titles:                true,
		Icons:                 true,
		MetaEverywhere:        true,
		LastModified:          true,
		Audio:                 true,
		ResourceLinks:         true,
		ProgressMessage:       true,
		CompletionCapability:  true,
		CompletionContext:     true,
		ElicitForm:            true,
		ElicitModes:           true,
		ElicitURL:             true,
		FormEnums:             true,
		FormDefaults:          true,
		SamplingTools:         true,
		SamplingLists:         true,
		SamplingMeta:          true,
		NotFoundCode:          codeInvalidParams,
		bit:                   in20260728,
	},
	{
		Version:               "2025-11-25",
		Handshake:             true,
		Sessions:              true,
		Resume:                true,
		Priming:               true,
		VersionHeader:         true,
		InputErrorsAreResults: true,
		StructuredOutput:      true,
		ToolAnnotations:       true,
		Titles:                true,
		Icons:                 true,
		MetaEverywhere:        true,
		LastModified:          true,
		Audio:                 true,
		ResourceLinks:         true,
		ProgressMessage:       true,
		CompletionCapability:  true,
		CompletionContext:     true,
		ElicitForm:            true,
		ElicitModes:           true,
		ElicitURL:             true,
		ElicitID:              true,
		URLRequiredError:      true,
		FormEnums:             true,
		FormDefaults:          true,
		SamplingTools:         true,
		SamplingLists:         true,
		SamplingMeta:          true,
		RootsChanged:          true,
		Rejections:            true,
		Tasks:                 true,
		NotFoundCode:          codeNotFound,
		bit:                   in20251125,
	},
	{
		Version:              "2025-06-18",
		Handshake:            true,
		Sessions:             true,
		Resume:               true,
		VersionHeader:        true,
		NullID:               true,
		StructuredOutput:     true,
		ToolAnnotations:      true,
		Titles:               true,
		MetaEverywhere:       true,
		LastModified:         true,
		Audio:                true,
		ResourceLinks:        true,
		ProgressMessage:      true,
		CompletionCapability: true,
		CompletionContext:    true,
		ElicitForm:           true,
		RootsChanged:         true,
		Rejections:           true,
		NotFoundCode:         codeNotFound,
		bit:                  in20250618,
	},
	{
		Version:              "2025-03-26",
		Handshake:            true,
		Assumed:              true,
		Batch:                true,
		Sessions:             true,
		Resume:               true,
		NullID:               true,
		ToolAnnotations:      true,
		Audio:                true,
		ProgressMessage:      true,
		CompletionCapability: true,
		RootsChanged:         true,
		Rejections:           true,
		NotFoundCode:         codeNotFound,
		bit:                  in20250326,
	},
	{
		// Its own HTTP transport is HTTP+SSE; a client that speaks it over
		// Streamable HTTP gets sessions like the others.
		Version:      "2024-11-05",
		Handshake:    true,
		Sessions:     true,
		NullID:       true,
		RootsChanged: true,
		Rejections:   true,
		NotFoundCode: codeNotFound,
		bit:          in20241105,
	},
}

// methods says which revisions have a method. A method that an extension or a
// user adds is in none.
var methods = map[string]rows{
	"completion/complete":                      inAll,
	"elicitation/create":                       in20250618 | in20251125 | in20260728,
	"initialize":                               inHandshake,
	"logging/setLevel":                         inHandshake,
	"notifications/cancelled":                  inAll,
	"notifications/elicitation/complete":       in20251125,
	"notifications/initialized":                inHandshake,
	"notifications/message":                    inAll,
	"notifications/progress":                   inAll,
	"notifications/prompts/list_changed":       inAll,
	"notifications/resources/list_changed":     inAll,
	"notifications/resources/updated":          inAll,
	"notifications/roots/list_changed":         inHandshake,
	"notifications/subscriptions/acknowledged": in20260728,
	"notifications/tools/list_changed":         inAll,
	"ping":                                     inHandshake,
	"prompts/get":                              inAll,
	"prompts/list":                             inAll,
	"resources/list":                           inAll,
	"resources/read":                           inAll,
	"resources/subscribe":                      inHandshake,
	"resources/templates/list":                 inAll,
	"resources/unsubscribe":                    inHandshake,
	"roots/list":                               inAll,
	"sampling/createMessage":                   inAll,
	"server/discover":                          in20260728,
	"subscriptions/listen":                     in20260728,
	"tools/call":                               inAll,
	"tools/list":                               inAll,
}

// stateful are the requests after which a session is another one.
var stateful = map[string]bool{
	"initialize":            true,
	"logging/setLevel":      true,
	"resources/subscribe":   true,
	"resources/unsubscribe": true,
}
