package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// A Line is what is read of a line of the audit of an authorization server.
type Line struct {
	Seq        uint64         `json:"seq"`
	Time       time.Time      `json:"time"`
	Event      string         `json:"event"`
	Outcome    string         `json:"outcome"`
	User       string         `json:"user"`
	UserName   string         `json:"userName"`
	Client     string         `json:"client"`
	ClientName string         `json:"clientName"`
	Remote     string         `json:"remote"`
	Parameters map[string]any `json:"parameters"`
}

// A Filter says which lines are meant: those for which all that is set is true. The zero value means
// all lines.
type Filter struct {
	// Since and Until bound the time of a line: Since is the first moment, Until the first one after.
	Since, Until time.Time
	// Event is the name of an event, or its first words: "token" is "token.issued" too, and "admin"
	// each act of an operator.
	Event string
	// User is the subject or the name of a user, Client the ID or the name of a client; acts of operators on
	// them count.
	User, Client string
	// Address are those that a request came from.
	Address netip.Prefix
	// Last is how many lines are meant at most, the newest. Default 0: all.
	Last int
	// LastBytes is how many bytes the lines of Last may have together: more are a *[TooLargeError].
	// Default 0: any number.
	LastBytes int
}

// A TooLargeError says that the newest lines have more bytes than Filter.LastBytes.
type TooLargeError struct{ Lines, Bytes int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the newest %d lines have more than %d bytes", e.Lines, e.Bytes)
}

// ParseAddress reads an address, or a network such as 192.0.2.0/24, for a Filter.
func ParseAddress(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return network, fmt.Errorf("%q is not an address or network; write 192.0.2.1 or 192.0.2.0/24", text)
	}
	return network, nil
}

// Query calls visit with each line of the log at path that the filter means, oldest first, and with
// what was read of it; both are valid until visit returns. Lines that cannot be read are counted and
// left out. Memory is bounded by Last, or by the longest line. The error is as that of Read.
func Query(ctx context.Context, path string, f *Filter, visit func(raw []byte, l *Line) error) (unreadable int, err error) {
	newest := make([][]byte, 0, min(f.Last, 1024))
	next, size := 0, 0 // where the oldest of newest is, once it is full; the bytes of newest
	err = Read(ctx, path, func(raw []byte) error {
		if f.User != "" && !mayHave(raw, f.User) || f.Client != "" && !mayHave(raw, f.Client) {
			return nil
		}
		var l Line
		if err := json.Unmarshal(raw, &l); err != nil || l.Seq == 0 {
			unreadable++
			return nil //nolint:nilerr // it is counted
		}
		switch {
		case !f.match(&l):
			return nil
		case f.Last == 0:
			return visit(raw, &l)
		case len(newest) < f.Last:
			size += len(raw)
			newest = append(newest, bytes.Clone(raw))
		default:
			size += len(raw) - len(newest[next])
			newest[next] = append(newest[next][:0], raw...)
			next = (next + 1) % f.Last
		}
		if f.LastBytes > 0 && size > f.LastBytes {
			return &TooLargeError{f.Last, f.LastBytes}
		}
		return nil
	})
	if errors.As(err, new(*TooLargeError)) {
		return unreadable, err
	}
	for i := range newest {
		raw := newest[(next+i)%len(newest)]
		var l Line
		if json.Unmarshal(raw, &l) != nil {
			continue // it was read before
		}
		if visiting := visit(raw, &l); visiting != nil {
			return unreadable, visiting
		}
	}
	return unreadable, err
}

// mayHave reports whether a text can be in a line: one that JSON writes as it is, is there as it is.
func mayHave(raw []byte, text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			return true
		}
	}
	return bytes.Contains(raw, []byte(text))
}

// match reports whether a line is meant.
func (f *Filter) match(l *Line) bool {
	switch {
	case !f.Since.IsZero() && l.Time.Before(f.Since), !f.Until.IsZero() && !l.Time.Before(f.Until):
		return false
	case f.Event != "" && !within(l.Event, f.Event):
		return false
	case f.User != "" && l.User != f.User && l.UserName != f.User && !l.isAbout("user", f.User, "name"):
		return false
	case f.Client != "" && l.Client != f.Client && l.ClientName != f.Client && !l.isAbout("client", f.Client, "id"):
		return false
	}
	return !f.Address.IsValid() || f.has(l.Remote)
}

// within reports whether an event has a name, or begins with its words.
func within(event, name string) bool {
	rest, ok := strings.CutPrefix(event, name)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '.')
}

// isAbout reports whether a line tells of an act of an operator on a user or client: the verbs for these
// have it as own, others under the noun.
func (l *Line) isAbout(noun, what, own string) bool {
	if !within(l.Event, "admin") {
		return false
	}
	return l.Parameters[noun] == what || within(l.Event, "admin "+noun) && l.Parameters[own] == what
}

func (f *Filter) has(remote string) bool {
	address, err := netip.ParseAddr(remote)
	return err == nil && f.Address.Contains(address.Unmap())
}
