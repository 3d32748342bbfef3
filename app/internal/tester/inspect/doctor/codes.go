package doctor

// A Severity says how bad a finding is.
type Severity string

// The severities.
const (
	// Error breaks the protocol, or makes clients fail.
	Error Severity = "error"
	// Warning is legal, and makes models or clients do worse than they could.
	Warning Severity = "warning"
	// Note is something to know.
	Note Severity = "note"
)

// Severities are all of them, the worst first.
func Severities() []Severity { return []Severity{Error, Warning, Note} }

// A Code is a kind of finding. Codes are stable: one that was released keeps its meaning.
type Code struct {
	// ID is the name, such as MCP-TOOL-003.
	ID string
	// Severity is that of its findings.
	Severity Severity
	// Title says what is wrong, in a few words.
	Title string
	// Clause is what it breaks: a page of the specification with its section, or whose rule it is.
	Clause string
	// Mend says what to write instead.
	Fix string
}

// Pages of the specification, and other sources of clauses.
const (
	basicIndex     = "basic/index, Messages"
	lifecycle      = "basic/lifecycle"
	stdioPage      = "basic/transports/stdio"
	httpPage       = "basic/transports/streamable-http"
	pagination     = "server/utilities/pagination"
	toolsPage      = "server/tools"
	toolNames      = "server/tools, Tool Names"
	toolSchemas    = "server/tools, Data Types, Tool"
	toolErrors     = "server/tools, Error Handling"
	paramHeaders   = "basic/transports/streamable-http, Custom Headers from Tool Parameters"
	schemaUsage    = "basic/index, JSON Schema Usage"
	promptsPage    = "server/prompts"
	resourcesPage  = "server/resources"
	completionPage = "server/utilities/completion"
	loggingPage    = "server/utilities/logging"
	skillsPage     = "SEP-2640, Integrity and Verification"
	hostRule       = "requirements of hosts and model providers"
	securityRule   = "security of hosts: tool poisoning"
)

// Codes is the table of all codes, sorted.
func Codes() []Code { return append([]Code(nil), codes...) }

var codes = []Code{
	{"MCP-BASE-001", Error, "the server answers an unknown method with a result", basicIndex, "answer unknown methods with the error -32601 (method not found)"},
	{"MCP-BASE-002", Warning, "the server answers an unknown method with another error", basicIndex, "answer unknown methods with the error -32601 (method not found)"},
	{"MCP-BASE-003", Error, "the server does not answer ping", "basic/utilities/ping", "answer ping with an empty result at any time"},
	{"MCP-BASE-004", Warning, "the server does not identify itself", lifecycle, "return serverInfo with a name and a version"},
	{"MCP-CAP-001", Error, "a declared capability is not served", lifecycle, "serve the capability's methods, or do not declare it"},
	{"MCP-CAP-002", Warning, "a capability is served but not declared", lifecycle, "declare the capability: clients do not use undeclared ones"},
	{"MCP-CAP-003", Error, "the server rejects a list request", lifecycle, "answer the list request, with an empty list if there are no items"},
	{"MCP-CAP-004", Note, "a capability is declared, but its list is empty", lifecycle, "declare the capability only when there are items, unless the list fills later"},
	{"MCP-CAP-005", Warning, "an extension has an invalid identifier", "basic/index, _meta", "name the extension vendor.example/name, with a domain you own"},
	{"MCP-CONN-001", Error, "a request failed", basicIndex, "answer every request with a result or a JSON-RPC error"},
	{"MCP-CONN-002", Error, "the connection ended during a request", basicIndex, "answer a request that fails with an error and keep running; check the server's log for the cause"},
	{"MCP-CONN-003", Error, "a request was not answered in time", basicIndex, "answer immediately, with an error if necessary; do long work after the answer or in a task"},
	{"MCP-CONN-004", Error, "standard output contains data that is not a message", stdioPage, "write logs to standard error; standard output must contain only messages, one per line"},
	{"MCP-CONN-005", Error, "an HTTP response is not a message", httpPage, "respond with one message as application/json, or with a stream of messages as text/event-stream"},
	{"MCP-CONN-006", Warning, "the server does not exit when its input ends", stdioPage, "exit with status 0 when standard input is closed"},
	{"MCP-CONN-007", Warning, "a result is very large", hostRule, "split lists into pages, and return large results as resources to read when needed"},
	{"MCP-CONN-008", Error, "the server does not work with a protocol version", lifecycle, "negotiate a version that the server supports, or reject the request with the supported versions"},
	{"MCP-ERA-001", Warning, "a tool is missing in a protocol version", lifecycle, "offer the same tools in every supported protocol version"},
	{"MCP-ERA-002", Warning, "a tool has other arguments in another protocol version", lifecycle, "offer the same schema in every supported protocol version"},
	{"MCP-ERA-003", Warning, "a prompt is missing in a protocol version", lifecycle, "offer the same prompts in every supported protocol version"},
	{"MCP-ERA-004", Warning, "a prompt has other arguments in another protocol version", lifecycle, "offer the same arguments in every supported protocol version"},
	{"MCP-ERA-005", Warning, "a resource is missing in a protocol version", lifecycle, "offer the same resources and templates in every supported protocol version"},
	{"MCP-ERA-006", Warning, "a capability is missing in a protocol version", lifecycle, "declare the same capabilities in every supported protocol version"},
	{"MCP-ERA-007", Warning, "a resource has another type in another protocol version", lifecycle, "list the same type in every supported protocol version"},
	{"MCP-ERA-008", Note, "a feature is offered only to some clients", lifecycle, "offer it to every client, unless it requires input from the client"},
	{"MCP-HTTP-001", Warning, "an unknown method gets the wrong HTTP status", httpPage, "send -32601 with status 404 in stateless protocol versions, and with 200 in versions with sessions"},
	{"MCP-INSTR-001", Warning, "the instructions are long", hostRule, "explain in 4,000 characters how the tools work together, and move the rest to their descriptions"},
	{"MCP-INSTR-002", Error, "the instructions contain hidden characters", securityRule, "remove the invisible characters"},
	{"MCP-INSTR-003", Warning, "the instructions give the model orders", securityRule, "describe the tools, and let the model and the user decide how to use them"},
	{"MCP-MODEL-001", Warning, "a model provider rejects the name of a tool", hostRule, "rename the tool: start with a letter, use only letters, digits, _ and -, at most 64 characters"},
	{"MCP-MODEL-002", Note, "a model provider does not support part of a schema", hostRule, "simplify the schema, or explain its constraints in the description"},
	{"MCP-MODEL-003", Warning, "the tools use much of the model's context", hostRule, "shorten descriptions and schemas, or offer fewer tools; hosts hide tools above 16,000 tokens"},
	{"MCP-MODEL-004", Warning, "a tool uses much of the model's context", hostRule, "shorten its description and schema"},
	{"MCP-PAGE-001", Error, "the pages of a list form a loop", pagination, "omit nextCursor on the last page, and use each cursor once"},
	{"MCP-PAGE-002", Error, "a list does not end", pagination, "omit nextCursor on the last page, and keep lists below 10,000 items"},
	{"MCP-PAGE-003", Warning, "a page is empty but not the last one", pagination, "omit pages without items"},
	{"MCP-PAGE-004", Warning, "the order of a list changes between requests", toolsPage, "sort the list: hosts cache it for the model, and pages depend on the order"},
	{"MCP-PAGE-005", Error, "a page is invalid", pagination, "return an object with the list, named items, and nextCursor as a string"},
	{"MCP-PAGE-006", Warning, "the server accepts an unknown cursor", pagination, "answer an unknown cursor with the error -32602 (invalid params)"},
	{"MCP-PROMPT-001", Error, "a prompt has no name", promptsPage, "give every prompt a name"},
	{"MCP-PROMPT-002", Error, "two prompts have the same name", promptsPage, "give each prompt a unique name"},
	{"MCP-PROMPT-003", Note, "a prompt has no description", promptsPage, "describe the purpose of the prompt: users choose by it"},
	{"MCP-PROMPT-004", Error, "two arguments of a prompt have the same name", promptsPage, "give each argument a unique name"},
	{"MCP-PROMPT-005", Error, "an argument of a prompt has no name", promptsPage, "give every argument a name"},
	{"MCP-PROMPT-006", Note, "an argument of a prompt has no description", promptsPage, "describe the value: users fill it in by hand"},
	{"MCP-PROMPT-007", Error, "a prompt contains hidden characters", securityRule, "remove the invisible characters"},
	{"MCP-PROMPT-008", Warning, "the server does not reject an unknown prompt", promptsPage, "answer an unknown prompt with the error -32602 (invalid params)"},
	{"MCP-RES-001", Error, "a URI is not absolute", resourcesPage, "write the URI with its scheme, such as file:///path or vendor://path (RFC 3986)"},
	{"MCP-RES-002", Error, "two resources have the same URI", resourcesPage, "list each resource once"},
	{"MCP-RES-003", Warning, "a MIME type is invalid", resourcesPage, "write type/subtype, such as text/plain; charset=utf-8"},
	{"MCP-RES-004", Warning, "a resource has no name", resourcesPage, "give every resource and template a name"},
	{"MCP-RES-005", Error, "a template is not a URI template", resourcesPage, "write the template according to RFC 6570, such as vendor://items/{id}"},
	{"MCP-RES-006", Error, "two templates are the same", resourcesPage, "list each template once"},
	{"MCP-RES-007", Warning, "a template cannot be matched without guessing", resourcesPage, "use each variable once, and separate two variables with text"},
	{"MCP-RES-008", Error, "a listed resource cannot be read", resourcesPage, "serve every listed resource, or remove it from the list"},
	{"MCP-RES-009", Warning, "a resource does not have its listed type", resourcesPage, "list the type that a read returns"},
	{"MCP-RES-010", Warning, "the server does not reject an unknown resource", resourcesPage, "answer an unknown URI with the error -32602, or -32002 in versions with a handshake"},
	{"MCP-RES-011", Error, "a resource contains hidden characters", securityRule, "remove the invisible characters"},
	{"MCP-SCHEMA-001", Error, "a tool has no input schema", toolSchemas, `use {"type":"object"} for a tool without arguments`},
	{"MCP-SCHEMA-002", Error, "a schema is invalid", schemaUsage, "fix the schema: clients ignore tools whose schemas they cannot read"},
	{"MCP-SCHEMA-003", Error, "a schema uses a dialect that clients do not support", schemaUsage, `omit "$schema", or use https://json-schema.org/draft/2020-12/schema`},
	{"MCP-SCHEMA-004", Error, "a schema refers to another document", schemaUsage, "put the referenced schema under $defs: clients load no other documents"},
	{"MCP-SCHEMA-005", Error, "the input schema does not have the type object", toolSchemas, `write "type": "object" at the root`},
	{"MCP-SCHEMA-006", Warning, "an argument has no description", toolSchemas, "describe the value: the model writes arguments by it"},
	{"MCP-SCHEMA-007", Warning, "a field is required but not defined", toolSchemas, "add the field to properties, or remove it from required"},
	{"MCP-SCHEMA-008", Error, "a default does not match its schema", toolSchemas, "use a default that the schema accepts"},
	{"MCP-SCHEMA-009", Error, "an x-mcp-header breaks the rules", paramHeaders, "annotate fields of primitive types, each with a unique header name"},
	{"MCP-SCHEMA-010", Error, "a schema is too complex", schemaUsage, "reduce the schema: clients limit the size of schemas they check"},
	{"MCP-SCHEMA-011", Warning, "an example does not match its schema", toolSchemas, "use examples that the schema accepts: the model copies them"},
	{"MCP-SCHEMA-012", Warning, "an argument looks like a secret", "security of hosts: arguments are displayed, logged and sent to models", "read secrets from the environment, or request them with URL mode elicitation"},
	{"MCP-SCHEMA-013", Note, "a schema uses an old dialect", schemaUsage, `omit "$schema": the default is 2020-12`},
	{"MCP-SKILL-001", Error, "the skills cannot be listed", skillsPage, "serve the extension's list, or do not declare the extension"},
	{"MCP-SKILL-002", Error, "a skill has an invalid entry", skillsPage, "write the entry as the extension requires: clients load nothing from an invalid one"},
	{"MCP-SKILL-003", Error, "a skill does not match its entry", skillsPage, "compute digests and sizes from the served bytes"},
	{"MCP-TOOL-001", Error, "a tool has no name", toolNames, "give every tool a name"},
	{"MCP-TOOL-002", Warning, "a tool name has characters it should not have", toolNames, "use only A to Z, a to z, 0 to 9, _, - and ."},
	{"MCP-TOOL-003", Warning, "a tool name is too long", toolNames, "use at most 128 characters, or 64 for model providers"},
	{"MCP-TOOL-004", Error, "two tools have the same name", toolNames, "give each tool a unique name"},
	{"MCP-TOOL-005", Warning, "two tool names look alike", toolNames, "rename one of them: models and users confuse them"},
	{"MCP-TOOL-006", Warning, "a tool has no description", toolsPage, "describe what the tool does and when to use it: the model chooses by it"},
	{"MCP-TOOL-007", Warning, "a tool description is long", hostRule, "put the most important facts first, in 1,024 characters, the limit of some providers"},
	{"MCP-TOOL-008", Error, "a tool contains hidden characters", securityRule, "remove the invisible characters"},
	{"MCP-TOOL-009", Warning, "a tool gives the model orders", securityRule, "describe the tool, and let the model and the user decide how to use it"},
	{"MCP-TOOL-010", Warning, "annotations contradict each other", "server/tools, ToolAnnotations", "remove destructiveHint from tools with readOnlyHint, or remove readOnlyHint"},
	{"MCP-TOOL-011", Error, "the server accepts a call of an unknown tool", toolErrors, "answer a call of an unknown tool with the error -32602 (invalid params)"},
	{"MCP-TOOL-012", Warning, "the server accepts arguments that violate the schema", toolErrors, "check arguments against the schema, and return isError so that the model can correct them"},
	{"MCP-TOOL-013", Error, "a tool is invalid", toolSchemas, "send the fields of a tool with their types"},
}

// codeOf finds a code.
func codeOf(id string) Code {
	for _, c := range codes {
		if c.ID == id {
			return c
		}
	}
	return Code{ID: id, Severity: Error, Title: "unknown code"}
}

// TitleOf is what a code says in a few words.
func TitleOf(id string) string { return codeOf(id).Title }
