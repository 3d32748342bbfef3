package jsonrpc

import "github.com/parley-mcp/parley/internal/wire"

// ID identifies a request: a string or an integer. IDs are comparable; the
// zero ID is absent. Its methods are IsZero, Equal(ID), String, AppendJSON,
// MarshalJSON and UnmarshalJSON.
type ID = wire.ID

// Limits bound a message; see the fields.
type Limits = wire.Limits

// StringID returns the ID that is the string s.
func StringID(s string) ID { return wire.StringID(s) }

// IntID returns the ID that is the integer n.
func IntID(n int64) ID { return wire.IntID(n) }
