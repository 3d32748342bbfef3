package transport

import "time"

// A TemporaryError says that a server, or something in front of it, did not
// answer a request in a way that may pass: over HTTP the statuses 408, 429 and
// 5xx. Transports' errors give it to errors.As. It says nothing about the
// revisions that the server speaks.
type TemporaryError struct {
	// Busy says that there was no room for the request just now: it was
	// neither wrong nor did it meet a fault.
	Busy bool
	// NotRun says that the request was refused before it ran. In an error that
	// is ErrInterrupted as well it speaks of another request, such as one for the
	// rest of an answer.
	NotRun bool
	// RetryAfter is how long the peer asks to wait before the next attempt; 0
	// if it does not say.
	RetryAfter time.Duration
	// Err is the transport's error.
	Err error
}

// Error is that of the transport.
func (e *TemporaryError) Error() string { return e.Err.Error() }

// Unwrap returns the transport's error.
func (e *TemporaryError) Unwrap() error { return e.Err }
