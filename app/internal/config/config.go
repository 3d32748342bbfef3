package config

import (
	"fmt"
	"strconv"

	"github.com/parley-mcp/parley/policy"
)

// A Client is a program that has files with MCP servers.
type Client string

// The clients.
const (
	ClientParley        Client = "parley"
	ClientClaudeDesktop Client = "claude-desktop"
	ClientClaudeCode    Client = "claude-code"
	ClientVSCode        Client = "vscode"
	ClientCopilot       Client = "copilot"
	ClientCursor        Client = "cursor"
	ClientGoose         Client = "goose"
	ClientOpenCode      Client = "opencode"
	ClientCrush         Client = "crush"
	ClientKit           Client = "kit" // and mcphost, its former name
	ClientLibreChat     Client = "librechat"
	ClientInspector     Client = "inspector"
	ClientTBXark        Client = "tbxark" // mcp-proxy of TBXark
	ClientOther         Client = "other"  // a file that was given and names no client
)

// Clients lists the clients whose files are found without being given, in their order of
// precedence within one scope.
func Clients() []Client {
	return []Client{
		ClientParley, ClientClaudeDesktop, ClientClaudeCode, ClientVSCode, ClientCopilot, ClientCursor,
		ClientGoose, ClientOpenCode, ClientCrush, ClientKit, ClientLibreChat, ClientInspector,
	}
}

// A Scope says whose words a file is. Of entries with one name, that of the first scope
// is the one that counts, whole.
type Scope string

// The scopes, in order of precedence.
const (
	ScopeGiven   Scope = "given"   // a file that the person named, as with --config
	ScopeManaged Scope = "managed" // the administrator of the machine
	ScopeOwn     Scope = "own"     // the person, in parley.jsonc
	ScopeLocal   Scope = "local"   // the person, for one project
	ScopeProject Scope = "project" // the authors of the project
	ScopeUser    Scope = "user"    // the person, in the file of another client
)

// A Source is where something was written.
type Source struct {
	Client Client
	File   string
	// Line counts from 1; 0 is unknown.
	Line  int
	Scope Scope
}

// String is "file:line".
func (s Source) String() string {
	if s.Line == 0 {
		return s.File
	}
	return s.File + ":" + strconv.Itoa(s.Line)
}

// A Config is what the files say together. It is not changed after it was made, and may be
// read by many goroutines.
type Config struct {
	// Servers are the entries that count, each name once, in order of precedence.
	Servers []*Server
	// Rules are the permissions of all files, those of the first scope first.
	Rules []policy.Rule
	// Pending are the rules of projects that would allow something, and wait for the person,
	// by file; see Options.Approved.
	Pending []PendingRules
	// Problems are what could not be read, or is not done as it was written.
	Problems []Problem
	// Files are the files that were found, in order of precedence.
	Files []Location
	// Own is what parley.jsonc says beside servers and rules. It is never nil.
	Own *Own

	limits []serverLimit
}

// Server returns the entry of that name, or nil.
func (c *Config) Server(name string) *Server {
	for _, s := range c.Servers {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// PendingRules are the rules that allow in one file that others wrote.
type PendingRules struct {
	// File has the digest for which an approval is.
	File  Location
	Rules []policy.Rule
}

// A Problem is something in a file that is not done, or not as it was written there.
type Problem struct {
	Source Source
	// Server is the name of the entry, or empty.
	Server string
	// Text says what is wrong and what to do. It holds no secrets.
	Text string
}

// String is source, server and text in one line.
func (p Problem) String() string {
	if p.Server == "" {
		return fmt.Sprintf("%s: %s", p.Source, p.Text)
	}
	return fmt.Sprintf("%s: %s: %s", p.Source, strconv.Quote(p.Server), p.Text)
}

// Own is what parley.jsonc says beside servers and rules.
type Own struct {
	// Path is where the person's file is, or would be.
	Path string
	// Model names the model of a conversation; empty is the program's default.
	Model string
	// BaseURL is where the provider of the model is; empty is the provider's own address.
	BaseURL string
	// Models are what is known of models, by PROVIDER:NAME.
	Models map[string]ModelEntry
	// ModelFault is the first of Config.Problems because of which Model, BaseURL and Models may
	// lack what the file says, such as the address of a model. Nil is none.
	ModelFault error
	// Roots are absolute folders that servers may be told about.
	Roots []string
	// Budgets bound one conversation.
	Budgets Budgets
	// Screen is how the screen of a conversation is.
	Screen Screen
	// Import says for clients whether their files are read; absent is true.
	Import map[Client]bool
}

// Budgets bound one conversation. Zero fields are the program's defaults.
type Budgets struct {
	Steps  int `json:"steps,omitzero"`
	Calls  int `json:"calls,omitzero"`
	Tokens int `json:"tokens,omitzero"`
	// Time is as time.ParseDuration reads it.
	Time Duration `json:"time,omitzero"`
	// Money is in the currency of the model's prices.
	Money float64 `json:"money,omitzero"`
}
