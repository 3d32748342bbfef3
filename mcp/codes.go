package mcp

// The codes of JSON-RPC 2.0.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// The codes of the protocol (basic/index, "Error Codes").
const (
	// CodeHeaderMismatch: a header says something else than the body.
	CodeHeaderMismatch = -32020
	// CodeMissingClientCapability: the request needs a capability that the
	// client did not declare; data is [MissingCapabilityData].
	CodeMissingClientCapability = -32021
	// CodeUnsupportedVersion: data is [UnsupportedVersionData].
	CodeUnsupportedVersion = -32022
	// CodeResourceNotFoundLegacy: no such resource. Handshake revisions only;
	// the newest one has CodeInvalidParams. Data is [ResourceNotFoundData].
	CodeResourceNotFoundLegacy = -32002
	// CodeURLElicitationRequired: the user has to visit a page first.
	// 2025-11-25 only; data is [URLElicitationRequiredData].
	CodeURLElicitationRequired = -32042
	// CodeUserRejected: the user refused sampling or roots. Handshake
	// revisions only.
	CodeUserRejected = -1
)

// Our own codes, outside of the ranges that JSON-RPC and the protocol reserve
// (-32768 to -32000). Data is [RetryData] where trying again makes sense. Clients
// send a request again by themselves that was refused as one of too many, tool
// calls included: a handler returns these two codes only before
// it has done anything, and does not hand on those of servers that it called.
const (
	// CodeRateLimited: too many requests in a short time; nothing was done.
	CodeRateLimited = -31001
	// CodeTooManyInFlight: too many requests at once; nothing was done.
	CodeTooManyInFlight = -31002
	// CodeTimeout: the handler took too long and was stopped.
	CodeTimeout = -31003
	// CodeShuttingDown: the server is about to end.
	CodeShuttingDown = -31004
	// CodeTooLarge: what was asked for is over a limit of size.
	CodeTooLarge = -31005
	// CodeInsufficientScope: the caller was not granted what the request needs;
	// data is [InsufficientScopeData]. Over HTTP its status is 403.
	CodeInsufficientScope = -31006
)

var codeNames = map[int64]string{
	CodeParseError:              "parse error",
	CodeInvalidRequest:          "invalid request",
	CodeMethodNotFound:          "method not found",
	CodeInvalidParams:           "invalid params",
	CodeInternalError:           "internal error",
	CodeHeaderMismatch:          "header mismatch",
	CodeMissingClientCapability: "missing client capability",
	CodeUnsupportedVersion:      "unsupported protocol version",
	CodeResourceNotFoundLegacy:  "resource not found",
	CodeURLElicitationRequired:  "URL elicitation required",
	CodeUserRejected:            "user rejected",
	CodeRateLimited:             "rate limited",
	CodeTooManyInFlight:         "too many requests in flight",
	CodeTimeout:                 "timeout",
	CodeShuttingDown:            "shutting down",
	CodeTooLarge:                "too large",
	CodeInsufficientScope:       "insufficient scope",
}

// CodeName is a code's name for logs, or "" for codes that are not known here.
func CodeName(code int64) string { return codeNames[code] }

// RetryData is the data of errors after which trying again makes sense.
type RetryData struct {
	// RetryAfterMs is how long to wait first, in milliseconds.
	RetryAfterMs int64 `json:"retryAfterMs"`
}

// UnsupportedVersionData is the data of [CodeUnsupportedVersion].
type UnsupportedVersionData struct {
	// Supported are the revisions that the server speaks, best first.
	Supported []string `json:"supported"`
	// Requested is the one that was asked for.
	Requested string `json:"requested"`
}

// InsufficientScopeData is the data of [CodeInsufficientScope].
type InsufficientScopeData struct {
	// Scopes are all that the request needs, those that were granted too.
	Scopes []string `json:"scopes"`
}

// MissingCapabilityData is the data of [CodeMissingClientCapability].
type MissingCapabilityData struct {
	// RequiredCapabilities are what the client would have to declare.
	RequiredCapabilities ClientCapabilities `json:"requiredCapabilities"`
}

// ResourceNotFoundData is the data of the error for a resource that does not
// exist.
type ResourceNotFoundData struct {
	// URI is the resource.
	URI string `json:"uri"`
}

// URLElicitationRequiredData is the data of [CodeURLElicitationRequired].
type URLElicitationRequiredData struct {
	// Elicitations are what the user has to do first.
	Elicitations []ElicitParams `json:"elicitations"`
}
