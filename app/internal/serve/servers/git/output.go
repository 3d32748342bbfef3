package git

import (
	"bytes"
	"errors"
)

// errFull is the error of an output that takes no more.
var errFull = errors.New("the result is full")

// An output keeps what is written to it, up to a limit.
type output struct {
	Text  bytes.Buffer
	Limit int
	Full  bool // there was more
}

// Write fails with errFull once the limit is reached.
func (o *output) Write(p []byte) (int, error) {
	room := o.Limit - o.Text.Len()
	if len(p) <= room {
		return o.Text.Write(p)
	}
	o.Full = true
	o.Text.Write(p[:max(room, 0)])
	return max(room, 0), errFull
}
