package tasks

import (
	"sync/atomic"
	"time"
)

// SetAhead has the clock of a DB be ahead by a time.
func SetAhead(d *DB, ahead *atomic.Int64) { d.ahead = ahead }

// SetSilence sets how long the connection of Watch is silent before it is tested, and how
// long that may take.
func SetSilence(d *DB, silence, answer time.Duration) { d.silence, d.answer = silence, answer }
