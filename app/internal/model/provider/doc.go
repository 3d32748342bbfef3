// Package provider is what the clients of model providers share: requests over HTTP
// that are tried again, event streams, lists of models, and errors in plain words.
//
// A key is sent in a header and is in nothing else: no error, no log, no address.
package provider
