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
	hostRule       = "what hosts and providers of models take"
	securityRule   = "security of hosts: tool poisoning"
)

// Codes is the table of all codes, sorted.
func Codes() []Code { return append([]Code(nil), codes...) }

var codes = []Code{
	{"MCP-BASE-001", Error, "an unknown method is answered as if it were known", basicIndex, "answer methods that the server does not have with the error -32601 (method not found)"},
	{"MCP-BASE-002", Warning, "an unknown method is answered with another error", basicIndex, "answer methods that the server does not have with the error -32601 (method not found)"},
	{"MCP-BASE-003", Error, "ping is not answered", "basic/utilities/ping", "answer ping with an empty result, at any time"},
	{"MCP-BASE-004", Warning, "the server does not say what it is", lifecycle, "give serverInfo with a name and a version"},
	{"MCP-CAP-001", Error, "a capability is declared and not served", lifecycle, "serve the methods of the capability, or do not declare it"},
	{"MCP-CAP-002", Warning, "a capability is served and not declared", lifecycle, "declare the capability: clients do not ask for what is not declared"},
	{"MCP-CAP-003", Error, "a list is refused", lifecycle, "answer the request for the list, with an empty one if there is nothing"},
	{"MCP-CAP-004", Note, "a capability is declared, and its list is empty", lifecycle, "declare the capability when there is something, unless the list fills later"},
	{"MCP-CAP-005", Warning, "the identifier of an extension is not legal", "basic/index, _meta", "name the extension as vendor.example/name, with a domain that is yours"},
	{"MCP-CONN-001", Error, "a request failed", basicIndex, "answer every request with a result or an error of JSON-RPC"},
	{"MCP-CONN-002", Error, "the connection ended during a request", basicIndex, "answer what cannot be done with an error, and keep running; the log of the server says why it ended"},
	{"MCP-CONN-003", Error, "a request was not answered in time", basicIndex, "answer at once, with an error if need be, and do long work after the answer or in a task"},
	{"MCP-CONN-004", Error, "standard output has something that is no message", stdioPage, "write logs to standard error: standard output is for messages alone, one on each line"},
	{"MCP-CONN-005", Error, "an answer over HTTP is no message", httpPage, "answer with one message as application/json, or with a stream of them as text/event-stream"},
	{"MCP-CONN-006", Warning, "the server does not end with its input", stdioPage, "end with status 0 when standard input is closed"},
	{"MCP-CONN-007", Warning, "a result is very large", hostRule, "give lists in pages, and results as resources that can be read when they are needed"},
	{"MCP-CONN-008", Error, "the server cannot be used in a revision", lifecycle, "negotiate a revision that the server speaks, or refuse with the revisions that it supports"},
	{"MCP-ERA-001", Warning, "a tool is missing in a revision", lifecycle, "offer the same tools in every revision that the server speaks"},
	{"MCP-ERA-002", Warning, "a tool takes other arguments in another revision", lifecycle, "offer the same schema in every revision that the server speaks"},
	{"MCP-ERA-003", Warning, "a prompt is missing in a revision", lifecycle, "offer the same prompts in every revision that the server speaks"},
	{"MCP-ERA-004", Warning, "a prompt takes other arguments in another revision", lifecycle, "offer the same arguments in every revision that the server speaks"},
	{"MCP-ERA-005", Warning, "a resource is missing in a revision", lifecycle, "offer the same resources and templates in every revision that the server speaks"},
	{"MCP-ERA-006", Warning, "a capability is missing in a revision", lifecycle, "declare the same capabilities in every revision that the server speaks"},
	{"MCP-ERA-007", Warning, "a resource has another type in another revision", lifecycle, "list the same type in every revision that the server speaks"},
	{"MCP-ERA-008", Note, "something is offered to some clients only", lifecycle, "none is needed for what cannot work without asking the client; else offer it to every client"},
	{"MCP-HTTP-001", Warning, "an unknown method has another HTTP status than it must", httpPage, "answer -32601 with the status 404 in stateless revisions, and with 200 in those with sessions"},
	{"MCP-INSTR-001", Warning, "the instructions are long", hostRule, "say in 4,000 characters how the tools work together, and the rest in their descriptions"},
	{"MCP-INSTR-002", Error, "the instructions have hidden characters", securityRule, "remove the characters that cannot be seen"},
	{"MCP-INSTR-003", Warning, "the instructions give the model orders", securityRule, "say what the tools do, and leave it to the model and the person what to do with them"},
	{"MCP-MODEL-001", Warning, "a provider of models refuses the name of a tool", hostRule, "rename the tool to letters, digits, _ and -, beginning with a letter, at most 64"},
	{"MCP-MODEL-002", Note, "a provider of models does not take all of a schema", hostRule, "simplify the schema, or say in the description what it says"},
	{"MCP-MODEL-003", Warning, "the tools take much of the model's context", hostRule, "shorten descriptions and schemas, or offer fewer tools; hosts hide tools above 16,000 tokens"},
	{"MCP-MODEL-004", Warning, "a tool takes much of the model's context", hostRule, "shorten its description and schema"},
	{"MCP-PAGE-001", Error, "the pages of a list go round in a circle", pagination, "give no nextCursor with the last page, and each cursor once"},
	{"MCP-PAGE-002", Error, "a list does not end", pagination, "give no nextCursor with the last page, and keep lists below 10,000 items"},
	{"MCP-PAGE-003", Warning, "a page is empty and not the last", pagination, "leave out pages without items"},
	{"MCP-PAGE-004", Warning, "a list has another order each time", toolsPage, "sort the list: hosts keep what the model was told, and pages depend on the order"},
	{"MCP-PAGE-005", Error, "a page is not what it must be", pagination, "answer with an object that has the list, items with their names, and nextCursor as a text"},
	{"MCP-PAGE-006", Warning, "a cursor that was never given is taken", pagination, "answer an unknown cursor with the error -32602 (invalid params)"},
	{"MCP-PROMPT-001", Error, "a prompt has no name", promptsPage, "name every prompt"},
	{"MCP-PROMPT-002", Error, "two prompts have the same name", promptsPage, "give each prompt a name of its own"},
	{"MCP-PROMPT-003", Note, "a prompt has no description", promptsPage, "say what the prompt is for: people choose by it"},
	{"MCP-PROMPT-004", Error, "two arguments of a prompt have the same name", promptsPage, "give each argument a name of its own"},
	{"MCP-PROMPT-005", Error, "an argument of a prompt has no name", promptsPage, "name every argument"},
	{"MCP-PROMPT-006", Note, "an argument of a prompt has no description", promptsPage, "say what to give: people fill it in by hand"},
	{"MCP-PROMPT-007", Error, "a prompt has hidden characters", securityRule, "remove the characters that cannot be seen"},
	{"MCP-PROMPT-008", Warning, "a prompt that does not exist is not refused", promptsPage, "answer an unknown prompt with the error -32602 (invalid params)"},
	{"MCP-RES-001", Error, "a URI is not absolute", resourcesPage, "write the URI with its scheme, such as file:///path or vendor://path (RFC 3986)"},
	{"MCP-RES-002", Error, "two resources have the same URI", resourcesPage, "list each resource once"},
	{"MCP-RES-003", Warning, "a MIME type is not legal", resourcesPage, "write type/subtype, such as text/plain; charset=utf-8"},
	{"MCP-RES-004", Warning, "a resource has no name", resourcesPage, "name every resource and template"},
	{"MCP-RES-005", Error, "a template is no URI template", resourcesPage, "write the template as RFC 6570 says, such as vendor://items/{id}"},
	{"MCP-RES-006", Error, "two templates are the same", resourcesPage, "list each template once"},
	{"MCP-RES-007", Warning, "a template cannot be matched without guessing", resourcesPage, "use each variable once, and put something between two of them"},
	{"MCP-RES-008", Error, "a resource that is listed cannot be read", resourcesPage, "serve what is listed, or leave it out of the list"},
	{"MCP-RES-009", Warning, "a resource has another type than was listed", resourcesPage, "list the type that reading gives"},
	{"MCP-RES-010", Warning, "a resource that does not exist is not refused", resourcesPage, "answer an unknown URI with the error -32602, in revisions with a handshake -32002"},
	{"MCP-RES-011", Error, "a resource has hidden characters", securityRule, "remove the characters that cannot be seen"},
	{"MCP-SCHEMA-001", Error, "a tool has no schema of its arguments", toolSchemas, `give {"type":"object"} to a tool without arguments`},
	{"MCP-SCHEMA-002", Error, "a schema is none", schemaUsage, "fix the schema: clients leave out tools whose schemas they cannot read"},
	{"MCP-SCHEMA-003", Error, "a schema has a dialect that clients do not know", schemaUsage, `leave "$schema" out, or name https://json-schema.org/draft/2020-12/schema`},
	{"MCP-SCHEMA-004", Error, "a schema refers to another document", schemaUsage, "put what it refers to under $defs: clients load nothing"},
	{"MCP-SCHEMA-005", Error, "the schema of the arguments is not that of an object", toolSchemas, `write "type": "object" at the root`},
	{"MCP-SCHEMA-006", Warning, "an argument has no description", toolSchemas, "say what to give: the model writes arguments by it"},
	{"MCP-SCHEMA-007", Warning, "a member is required and not described", toolSchemas, "add the member to properties, or take it out of required"},
	{"MCP-SCHEMA-008", Error, "a default does not fit its schema", toolSchemas, "give a default that the schema takes"},
	{"MCP-SCHEMA-009", Error, "an x-mcp-header breaks the rules", paramHeaders, "annotate members of plain types, each with a header name of its own"},
	{"MCP-SCHEMA-010", Error, "a schema is too complex", schemaUsage, "make it smaller: clients bound what they check"},
	{"MCP-SCHEMA-011", Warning, "an example does not fit its schema", toolSchemas, "give examples that the schema takes: the model copies them"},
	{"MCP-SCHEMA-012", Warning, "an argument looks like a secret", "security of hosts: arguments are shown, logged and sent to models", "take secrets from the environment, or ask for them in a page (elicitation by URL)"},
	{"MCP-SCHEMA-013", Note, "a schema names an old dialect", schemaUsage, `leave "$schema" out: the default is 2020-12`},
	{"MCP-SKILL-001", Error, "the skills cannot be listed", skillsPage, "serve the list of the extension, or do not declare it"},
	{"MCP-SKILL-002", Error, "the entry of a skill is not valid", skillsPage, "make the entry as the extension says: clients load nothing of it"},
	{"MCP-SKILL-003", Error, "a skill is not what its entry says", skillsPage, "make digests and sizes of the bytes that are served"},
	{"MCP-TOOL-001", Error, "a tool has no name", toolNames, "name every tool"},
	{"MCP-TOOL-002", Warning, "the name of a tool has other characters than it should", toolNames, "use A to Z, a to z, 0 to 9, _, - and . alone"},
	{"MCP-TOOL-003", Warning, "the name of a tool is too long", toolNames, "use at most 128 characters, and 64 for providers of models"},
	{"MCP-TOOL-004", Error, "two tools have the same name", toolNames, "give each tool a name of its own"},
	{"MCP-TOOL-005", Warning, "two names of tools look alike", toolNames, "rename one of them: the model and people take one for the other"},
	{"MCP-TOOL-006", Warning, "a tool has no description", toolsPage, "say what the tool does and when to use it: the model chooses by it"},
	{"MCP-TOOL-007", Warning, "the description of a tool is long", hostRule, "say the first thing first, in 1,024 characters, which is what some providers take"},
	{"MCP-TOOL-008", Error, "a tool has hidden characters", securityRule, "remove the characters that cannot be seen"},
	{"MCP-TOOL-009", Warning, "a tool gives the model orders", securityRule, "say what the tool does, and leave it to the model and the person what to do with it"},
	{"MCP-TOOL-010", Warning, "annotations contradict each other", "server/tools, ToolAnnotations", "leave destructiveHint out of tools with readOnlyHint, or take readOnlyHint away"},
	{"MCP-TOOL-011", Error, "a tool that does not exist is called", toolErrors, "answer a call of an unknown tool with the error -32602 (invalid params)"},
	{"MCP-TOOL-012", Warning, "arguments that break the schema are taken", toolErrors, "check arguments against the schema, and answer with isError, so that the model can correct them"},
	{"MCP-TOOL-013", Error, "a tool is not what it must be", toolSchemas, "send the members of a tool with their types"},
}

// codeOf finds a code.
func codeOf(id string) Code {
	for _, c := range codes {
		if c.ID == id {
			return c
		}
	}
	return Code{ID: id, Severity: Error, Title: "a code that is not in the table"}
}

// TitleOf is what a code says in a few words.
func TitleOf(id string) string { return codeOf(id).Title }
