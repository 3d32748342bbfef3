package web

import (
	"fmt"
	"net/http"
)

// InnerWriter returns the type of the innermost ResponseWriter that can be
// reached from w by Unwrap, for messages, and whether one on the way can flush.
// With net/http's own writers it is one of those; otherwise it is the type that
// lacks an Unwrap method.
func InnerWriter(w http.ResponseWriter) (kind string, flushes bool) {
	for {
		switch w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			flushes = true
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return fmt.Sprintf("%T", w), flushes
		}
		w = inner.Unwrap()
	}
}
