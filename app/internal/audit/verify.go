package audit

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
)

// A Chain is what Verify found.
type Chain struct {
	Lines uint64 `json:"lines"`          // how many lines there are
	First uint64 `json:"first,omitzero"` // the number of the first one, which is above 1 if files were removed
	Last  uint64 `json:"last,omitzero"`
	Hash  string `json:"hash"` // that of the last line; "" of an empty log
	// Authenticated is the number of the first line from which on all are authenticated by the key; 0
	// without one.
	Authenticated uint64 `json:"authenticated,omitzero"`
}

// VerifyOptions adjust Verify. The zero value, and nil, check the chain alone.
type VerifyOptions struct {
	// Expect is the hash of a line that must be there, or of the one before the first: a log that was
	// cut off behind a hash that was kept elsewhere, or written anew, has no such line.
	Expect string
	// Key is that of the lines' MACs: from the first line with one on, all must have theirs.
	Key []byte
}

// Verify reads the log at path with its renamed files, and checks that each line follows the one
// before. The first must have the number 1, unless a line says that those before were removed. The
// error names the first line that is wrong. o may be nil.
func Verify(ctx context.Context, path string, o *VerifyOptions) (Chain, error) {
	v := &verifier{}
	if o != nil {
		v.o = *o
	}
	err := Read(ctx, path, v.line)
	switch {
	case errors.As(err, new(*IncompleteError)):
		return v.chain, fmt.Errorf("line %d is incomplete: a write was interrupted, or the end was cut off", v.chain.Last+1)
	case err != nil:
		return v.chain, err
	}
	return v.chain, v.whole()
}

// A verifier checks a chain line by line.
type verifier struct {
	o       VerifyOptions
	chain   Chain
	before  string // the hash of the line before the first
	found   bool   // the hash that is expected
	removed uint64 // the last line that was removed, as a line says
}

func (v *verifier) line(line []byte) error {
	c := &v.chain
	var l struct {
		link
		Event        string `json:"event"`
		RemovedLines uint64 `json:"removedLines"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return fmt.Errorf("line %d is not JSON: %w", c.Last+1, err)
	}
	if c.Lines == 0 {
		if l.Seq == 0 || (l.Seq == 1) != (l.Prev == "") {
			return errors.New("the first line is not one of a chained audit")
		}
		c.First, c.Last, c.Hash, v.before = l.Seq, l.Seq-1, l.Prev, l.Prev
	}
	if l.Seq != c.Last+1 || l.Prev != c.Hash {
		return fmt.Errorf("line %d does not follow the line before: a line was changed, removed, inserted or moved", c.Last+1)
	}
	if err := v.authenticate(line, l.Seq); err != nil {
		return err
	}
	if l.Event == eventRemoved {
		v.removed = max(v.removed, l.RemovedLines)
	}
	c.Lines, c.Last, c.Hash = c.Lines+1, l.Seq, hash(line)
	v.found = v.found || c.Hash == v.o.Expect
	return nil
}

// authenticate checks the MAC of a line.
func (v *verifier) authenticate(line []byte, seq uint64) error {
	if len(v.o.Key) == 0 {
		return nil
	}
	text, given := cutMAC(line)
	switch {
	case given == "" && v.chain.Authenticated > 0:
		return fmt.Errorf("line %d has no MAC, but lines before it do: it was not written with the key", seq)
	case given == "":
		return nil
	case !hmac.Equal([]byte(given), []byte(mac(v.o.Key, text))):
		return fmt.Errorf("line %d has a wrong MAC: it was changed or written without the key, or the key is wrong", seq)
	case v.chain.Authenticated == 0:
		v.chain.Authenticated = seq
	}
	return nil
}

// whole checks what the end shows.
func (v *verifier) whole() error {
	c := &v.chain
	switch {
	case v.o.Expect != "" && !v.found && v.o.Expect != v.before:
		return fmt.Errorf("no line has the hash %s: lines were removed or rewritten", v.o.Expect)
	case c.First > 1 && v.removed+1 < c.First && (v.o.Expect == "" || v.o.Expect != v.before):
		return fmt.Errorf("line %d is the first: the lines before it are missing, and no line says that they were removed", c.First)
	case len(v.o.Key) > 0 && c.Lines > 0 && c.Authenticated == 0:
		return errors.New("no line has a MAC: they were not written with the key")
	}
	return nil
}
