package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/parley-mcp/parley/strictjson"
)

const (
	format  = "parley-lock"
	version = 1
)

// MaxBytes is the size of the largest lock that is read.
const MaxBytes = 64 << 20

// maxDepth is how deep a lock may be nested: deeper than what comes from a server.
const maxDepth = 96

// What can be wrong with the file of a lock.
var (
	// ErrNoLock says that a text is not a lock.
	ErrNoLock = errors.New("it is no lock")
	// ErrNewer says that a lock was written by a newer program.
	ErrNewer = errors.New("it was written by a newer parley")
	// ErrEdited says that a lock is not as it was written.
	ErrEdited = errors.New("it was changed after it was written")
	// ErrTooLarge says that a lock is longer than MaxBytes.
	ErrTooLarge = fmt.Errorf("it has more than %d MiB", MaxBytes>>20)
)

// A file is the form of a stored contract.
type file struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Digest  string `json:"digest"`
	Contract
}

// Encode writes a contract. The same contract gives the same bytes.
func Encode(c *Contract) ([]byte, error) {
	sum, err := digest(c)
	if err != nil {
		return nil, err
	}
	return encode(&file{format, version, sum, *c}, "  ")
}

// digest stands for all that a contract says.
func digest(c *Contract) (string, error) {
	raw, err := encode(c, "")
	if err != nil {
		return "", fmt.Errorf("writing the lock: %w", err)
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Decode reads what Encode wrote. The error is one of those above.
func Decode(r io.Reader) (*Contract, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > MaxBytes {
		return nil, ErrTooLarge
	}
	head, err := strictjson.ParseObject(raw, &strictjson.Options{MaxBytes: MaxBytes, MaxDepth: maxDepth})
	if err != nil {
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`{"format":"`+format)) || bytes.Contains(raw[:min(len(raw), 80)], []byte(format)) {
			return nil, fmt.Errorf("%w, or cut off: %w", ErrEdited, err)
		}
		return nil, fmt.Errorf("%w: %w", ErrNoLock, err)
	}
	var named string
	if value, ok := head.Member("format"); !ok || json.Unmarshal(value, &named) != nil || named != format {
		return nil, fmt.Errorf("%w: its member \"format\" is not %q", ErrNoLock, format)
	}
	var number int
	if value, ok := head.Member("version"); !ok || json.Unmarshal(value, &number) != nil || number < 1 {
		return nil, fmt.Errorf("%w: its member \"version\" is no number from 1 on", ErrEdited)
	}
	if number > version {
		return nil, fmt.Errorf("%w: it is of version %d, and this program reads up to %d", ErrNewer, number, version)
	}
	var f file
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEdited, err)
	}
	sum, err := digest(&f.Contract)
	if err != nil {
		return nil, err
	}
	if sum != f.Digest {
		return nil, fmt.Errorf("%w: its digest is another one", ErrEdited)
	}
	return &f.Contract, nil
}
