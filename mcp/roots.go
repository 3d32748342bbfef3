package mcp

// ListRootsParams ask a client for its roots. Deprecated by the newest revision:
// take directories as arguments, resource URIs or configuration.
type ListRootsParams struct {
	RequestBase
}

// ListRootsResult are the roots of a client.
type ListRootsResult struct {
	// Roots are where the server may work.
	Roots []Root `json:"roots"`
	// Meta is metadata. Handshake revisions only.
	Meta Meta `json:"_meta,omitzero"`
}

// Root is a place where a server may work.
type Root struct {
	// URI is a file:// URI.
	URI string `json:"uri"`
	// Name is a name for people.
	Name string `json:"name,omitzero"`
	// Meta is metadata. Not before 2025-06-18.
	Meta Meta `json:"_meta,omitzero"`
}
