package mcp

// Settings are the settings of a capability or extension: a JSON object. Nil
// means that it is not offered; an empty object that it is, without settings.
type Settings map[string]RawValue

// ClientCapabilities are what a client offers to servers. The set is open:
// members that are not known here are kept in Extra. A client that offers
// nothing has an empty one.
type ClientCapabilities struct {
	// Elicitation says that the client asks its user for servers.
	Elicitation *ElicitationCapability `json:"elicitation,omitzero"`
	// Sampling says that the client lets servers use its model. Deprecated in
	// the newest revision: call a model from the server.
	Sampling *SamplingCapability `json:"sampling,omitzero"`
	// Roots says that the client tells servers where to work. Deprecated in
	// the newest revision: take directories as arguments or configuration.
	Roots *RootsCapability `json:"roots,omitzero"`
	// Extensions are extensions of the protocol by identifier, each with its
	// settings (a JSON object).
	Extensions map[string]RawValue `json:"extensions,omitzero"`
	// Experimental are capabilities outside the protocol, each a JSON object.
	Experimental map[string]RawValue `json:"experimental,omitzero"`
	// Extra are members that are not known here.
	Extra map[string]RawValue `json:",embed"`
}

// ElicitationCapability says in which modes a client asks its user.
type ElicitationCapability struct {
	// Form is the form mode. A capability that names no mode means form.
	Form Settings `json:"form,omitzero"`
	// URL is the mode in which the user is sent to a web page.
	URL Settings `json:"url,omitzero"`
}

// SamplingCapability says what a client allows in sampling/createMessage.
type SamplingCapability struct {
	// Context allows IncludeContext other than "none".
	Context Settings `json:"context,omitzero"`
	// Tools allows Tools and ToolChoice.
	Tools Settings `json:"tools,omitzero"`
}

// RootsCapability says that a client answers roots/list.
type RootsCapability struct {
	// ListChanged says that the client sends notifications/roots/list_changed.
	// Handshake revisions only.
	ListChanged bool `json:"listChanged,omitzero"`
}

// HasForm reports whether forms can be shown: elicitation is offered and names
// form, or no mode at all, as before modes existed. It may be called on nil.
func (c *ClientCapabilities) HasForm() bool {
	return c != nil && c.Elicitation != nil &&
		(c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// HasURL reports whether URL elicitation is offered. It may be called on nil.
func (c *ClientCapabilities) HasURL() bool {
	return c != nil && c.Elicitation != nil && c.Elicitation.URL != nil
}

// HasSampling reports whether sampling is offered. It may be called on nil.
func (c *ClientCapabilities) HasSampling() bool { return c != nil && c.Sampling != nil }

// HasSamplingTools reports whether sampling with tools is offered. It may be
// called on nil.
func (c *ClientCapabilities) HasSamplingTools() bool {
	return c.HasSampling() && c.Sampling.Tools != nil
}

// HasSamplingContext reports whether sampling with the context of servers is
// offered. It may be called on nil.
func (c *ClientCapabilities) HasSamplingContext() bool {
	return c.HasSampling() && c.Sampling.Context != nil
}

// HasRoots reports whether roots are offered. It may be called on nil.
func (c *ClientCapabilities) HasRoots() bool { return c != nil && c.Roots != nil }

// ServerCapabilities are what a server offers to clients. The set is open:
// members that are not known here are kept in Extra.
type ServerCapabilities struct {
	// Tools says that there are tools to call.
	Tools *ToolsCapability `json:"tools,omitzero"`
	// Resources says that there are resources to read.
	Resources *ResourcesCapability `json:"resources,omitzero"`
	// Prompts says that there are prompts.
	Prompts *PromptsCapability `json:"prompts,omitzero"`
	// Completions says that arguments are completed. 2024-11-05 completes
	// without saying so.
	Completions Settings `json:"completions,omitzero"`
	// Logging says that log messages are sent. Deprecated in the newest
	// revision: write to standard error, or use OpenTelemetry.
	Logging Settings `json:"logging,omitzero"`
	// Extensions are extensions of the protocol by identifier, each with its
	// settings (a JSON object).
	Extensions map[string]RawValue `json:"extensions,omitzero"`
	// Experimental are capabilities outside the protocol, each a JSON object.
	Experimental map[string]RawValue `json:"experimental,omitzero"`
	// Extra are members that are not known here.
	Extra map[string]RawValue `json:",embed"`
}

// ToolsCapability says that a server has tools.
type ToolsCapability struct {
	// ListChanged says that changes of the list are notified.
	ListChanged bool `json:"listChanged,omitzero"`
}

// PromptsCapability says that a server has prompts.
type PromptsCapability struct {
	// ListChanged says that changes of the list are notified.
	ListChanged bool `json:"listChanged,omitzero"`
}

// ResourcesCapability says that a server has resources.
type ResourcesCapability struct {
	// Subscribe says that changes of single resources are notified on demand.
	Subscribe bool `json:"subscribe,omitzero"`
	// ListChanged says that changes of the list are notified.
	ListChanged bool `json:"listChanged,omitzero"`
}

// None reports whether nothing at all is declared. Servers exist that declare nothing and have tools,
// so that only asking tells. It may be called on nil.
func (c *ServerCapabilities) None() bool {
	return c == nil || c.Tools == nil && c.Prompts == nil && c.Resources == nil && c.Completions == nil &&
		c.Logging == nil && len(c.Extensions)+len(c.Experimental)+len(c.Extra) == 0
}

// Has reports whether the capability with the dotted name of a [Method] row is
// offered: "tools", "resources.subscribe", "completions". The empty name is
// always offered; an unknown one never. It may be called on nil.
func (c *ServerCapabilities) Has(name string) bool {
	if name == "" {
		return true
	}
	if c == nil {
		return false
	}
	switch name {
	case CapTools:
		return c.Tools != nil
	case CapToolsListChanged:
		return c.Tools != nil && c.Tools.ListChanged
	case CapResources:
		return c.Resources != nil
	case CapResourcesSubscribe:
		return c.Resources != nil && c.Resources.Subscribe
	case CapResourcesListChanged:
		return c.Resources != nil && c.Resources.ListChanged
	case CapPrompts:
		return c.Prompts != nil
	case CapPromptsListChanged:
		return c.Prompts != nil && c.Prompts.ListChanged
	case CapCompletions:
		return c.Completions != nil
	case CapLogging:
		return c.Logging != nil
	}
	return false
}

// Has reports whether the capability with the dotted name of a [Method] row is
// offered: "sampling", "sampling.tools", "elicitation.url". "elicitation" means
// any mode. The empty name is always offered; an unknown one never. It may be
// called on nil.
func (c *ClientCapabilities) Has(name string) bool {
	switch name {
	case "":
		return true
	case CapElicitation:
		return c != nil && c.Elicitation != nil
	case CapElicitationForm:
		return c.HasForm()
	case CapElicitationURL:
		return c.HasURL()
	case CapSampling:
		return c.HasSampling()
	case CapSamplingTools:
		return c.HasSamplingTools()
	case CapSamplingContext:
		return c.HasSamplingContext()
	case CapRoots:
		return c.HasRoots()
	case CapRootsListChanged:
		return c.HasRoots() && c.Roots.ListChanged
	}
	return false
}

// The dotted names of capabilities, as [Method.Capability] and Has use them.
const (
	CapTools                = "tools"
	CapToolsListChanged     = "tools.listChanged"
	CapResources            = "resources"
	CapResourcesSubscribe   = "resources.subscribe"
	CapResourcesListChanged = "resources.listChanged"
	CapPrompts              = "prompts"
	CapPromptsListChanged   = "prompts.listChanged"
	CapCompletions          = "completions"
	CapLogging              = "logging"
	CapSampling             = "sampling"
	CapSamplingTools        = "sampling.tools"
	CapSamplingContext      = "sampling.context"
	CapElicitation          = "elicitation"
	CapElicitationForm      = "elicitation.form"
	CapElicitationURL       = "elicitation.url"
	CapRoots                = "roots"
	CapRootsListChanged     = "roots.listChanged"
)
