package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Schema is the URL of the schema of server.json that is written and checked.
const Schema = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

// A Server is the content of server.json.
type Server struct {
	Schema      string      `json:"$schema"`
	Name        string      `json:"name"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description"`
	Version     string      `json:"version"`
	WebsiteURL  string      `json:"websiteUrl,omitempty"`
	Repository  *Repository `json:"repository,omitempty"`
	Packages    []Package   `json:"packages,omitempty"`
	Remotes     []Transport `json:"remotes,omitempty"`
}

// A Repository is where the sources of a server are.
type Repository struct {
	URL       string `json:"url"`
	Source    string `json:"source"`
	Subfolder string `json:"subfolder,omitempty"`
}

// A Package is one way to install a server.
type Package struct {
	RegistryType string     `json:"registryType"`
	Identifier   string     `json:"identifier"`
	Version      string     `json:"version,omitempty"`
	FileSHA256   string     `json:"fileSha256,omitempty"`
	RuntimeHint  string     `json:"runtimeHint,omitempty"`
	RuntimeArgs  []Argument `json:"runtimeArguments,omitempty"`
	Args         []Argument `json:"packageArguments,omitempty"`
	Environment  []Variable `json:"environmentVariables,omitempty"`
	Transport    Transport  `json:"transport"`
}

// Types of transports.
const (
	TransportStdio      = "stdio"
	TransportStreamable = "streamable-http"
	TransportSSE        = "sse"
)

// A Transport is how a server is reached: after a package was started, or at a URL.
type Transport struct {
	Type      string           `json:"type"`
	URL       string           `json:"url,omitempty"`
	Headers   []Variable       `json:"headers,omitempty"`
	Variables map[string]Input `json:"variables,omitempty"` // of the URL of a remote server
}

// An Input is a value that the user fills in, or that is fixed.
type Input struct {
	Description string   `json:"description,omitempty"`
	Format      string   `json:"format,omitempty"`
	Value       string   `json:"value,omitempty"`
	Default     string   `json:"default,omitempty"`
	Placeholder string   `json:"placeholder,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	Required    bool     `json:"isRequired,omitempty"`
	Secret      bool     `json:"isSecret,omitempty"`
}

// A Variable is an environment variable or a header.
type Variable struct {
	Name string `json:"name"`
	Input
}

// Types of arguments.
const (
	ArgumentNamed      = "named"
	ArgumentPositional = "positional"
)

// An Argument is an argument of a command.
type Argument struct {
	Type      string `json:"type"`
	Name      string `json:"name,omitempty"`      // of a named one, with its dashes
	ValueHint string `json:"valueHint,omitempty"` // names a positional one
	Repeated  bool   `json:"isRepeated,omitempty"`
	Input
}

// Encode is the text of server.json, laid out and with an end of line.
func (s *Server) Encode() ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("writing server.json: %w", err)
	}
	return text.Bytes(), nil
}
