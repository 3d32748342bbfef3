// Package jsonrpc is the envelope of the protocol: JSON-RPC 2.0 as the Model
// Context Protocol uses it. [Parse] reads one message strictly, [ParseBatch]
// an array of them, [Outgoing.AppendJSON] writes one, and [Peer] keeps track of
// the requests of one long-lived relation in both directions.
package jsonrpc
