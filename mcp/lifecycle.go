package mcp

// Implementation names a piece of software. It is reported by that software
// itself and not verified: it is for display and logs, nothing may be
// decided by it.
type Implementation struct {
	// Name is the programmatic name.
	Name string `json:"name"`
	// Title is the name for people; empty means Name.
	Title string `json:"title,omitzero"`
	// Version is the version of the software.
	Version string `json:"version"`
	// Description says in a sentence what it does.
	Description string `json:"description,omitzero"`
	// WebsiteURL leads to more about it.
	WebsiteURL string `json:"websiteUrl,omitzero"`
	// Icons are pictures for it.
	Icons []Icon `json:"icons,omitzero"`
}

// Icon is a picture for a person's screen. It comes from a stranger: see the
// security considerations of basic/index, icons, before fetching one.
type Icon struct {
	// Src is an https: or data: URI of an image.
	Src string `json:"src"`
	// MIMEType overrides the image's own type; it is advisory.
	MIMEType string `json:"mimeType,omitzero"`
	// Sizes are sizes such as "48x48", or "any" for scalable images.
	Sizes []string `json:"sizes,omitzero"`
	// Theme is the background the icon is made for: [ThemeLight] or
	// [ThemeDark]; empty fits both.
	Theme string `json:"theme,omitzero"`
}

// The themes of icons.
const (
	ThemeLight = "light"
	ThemeDark  = "dark"
)

// InitializeParams open the handshake. Handshake revisions only.
type InitializeParams struct {
	RequestBase
	// ProtocolVersion is the newest revision the client wants to speak.
	ProtocolVersion string `json:"protocolVersion"`
	// Capabilities are what the client offers.
	Capabilities ClientCapabilities `json:"capabilities"`
	// ClientInfo names the client's software.
	ClientInfo Implementation `json:"clientInfo"`
}

// InitializeResult is the server's half of the handshake. Handshake revisions
// only.
type InitializeResult struct {
	ResultBase
	// ProtocolVersion is the revision that both will speak. A client that
	// cannot must disconnect.
	ProtocolVersion string `json:"protocolVersion"`
	// Capabilities are what the server offers.
	Capabilities ServerCapabilities `json:"capabilities"`
	// ServerInfo names the server's software.
	ServerInfo Implementation `json:"serverInfo"`
	// Instructions tell a model how to use the server. Untrusted.
	Instructions string `json:"instructions,omitzero"`
}

// DiscoverParams ask what a server is and offers (server/discover).
type DiscoverParams struct {
	RequestBase
}

// DiscoverResult says what a server is and offers. The server's name is in
// Meta.ServerInfo.
type DiscoverResult struct {
	ResultBase
	Cacheable
	// SupportedVersions are the revisions that the server speaks, best first.
	SupportedVersions []string `json:"supportedVersions"`
	// Capabilities are what the server offers.
	Capabilities ServerCapabilities `json:"capabilities"`
	// Instructions tell a model how to use the server. Untrusted.
	Instructions string `json:"instructions,omitzero"`
}

// CancelledParams end a request that is under way (basic/patterns/cancellation).
type CancelledParams struct {
	NotificationBase
	// RequestID is the request to cancel; the sender of the notification must
	// have sent it itself.
	RequestID ID `json:"requestId,omitzero"`
	// Reason is for logs and people.
	Reason string `json:"reason,omitzero"`
}

// ProgressParams tell how far a request has come (basic/patterns/progress).
type ProgressParams struct {
	NotificationBase
	// ProgressToken is the one that the request gave.
	ProgressToken ID `json:"progressToken"`
	// Progress is how far it has come, in units of the sender's choice. It
	// MUST grow with each notification.
	Progress float64 `json:"progress"`
	// Total is where Progress will end, in the same unit; nil is unknown.
	Total *float64 `json:"total,omitzero"`
	// Message says what is being done. Not in 2024-11-05.
	Message string `json:"message,omitzero"`
}
