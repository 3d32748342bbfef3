package repo

import (
	"bytes"
	"errors"
)

// ErrFull is the error of an Output that takes no more.
var ErrFull = errors.New("the result is full")

// An Output keeps what is written to it, up to a limit.
type Output struct {
	Text  bytes.Buffer
	Limit int
	Full  bool // there was more
}

// Write fails with ErrFull once the limit is reached.
func (o *Output) Write(p []byte) (int, error) {
	room := o.Limit - o.Text.Len()
	if len(p) <= room {
		return o.Text.Write(p)
	}
	o.Full = true
	o.Text.Write(p[:max(room, 0)])
	return max(room, 0), ErrFull
}
