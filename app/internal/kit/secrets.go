package kit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// MaxError is the maximum number of bytes shown of an error, whose text can come from a server.
const MaxError = 4 << 10

// ErrorText returns the text of an error after CutError, escaped and with all lines but the first indented, so
// that a server's line cannot look like one of Parley's.
func ErrorText(err error) string {
	return strings.ReplaceAll(host.Escape(CutError(err.Error())), "\n", "\n    | ")
}

// CutError returns the text of an error without advice for programs that use the library, cut to MaxError bytes.
func CutError(text string) string {
	text = setOption.ReplaceAllString(text, "")
	if len(text) > MaxError {
		text = strings.ToValidUTF8(text[:MaxError], "") + "… (cut off)"
	}
	return text
}

// setOption matches advice for programs that use the library.
var setOption = regexp.MustCompile(` \(set Options\.\w+\)`)

// OneLine returns a value in one line, shortened and escaped.
func OneLine(raw mcp.RawValue) string {
	return Shorten(host.EscapeLine(Shorten(string(raw), MaxMessage)), MaxMessage)
}

// Masked returns a text with the secrets of this run masked.
func (c *Console) Masked(text string) string { return c.Streams.Masker().Known(text) }

// MaskedProblems returns the problems of a server with the secrets of this run masked.
func (c *Console) MaskedProblems(list []client.Problem) []client.Problem {
	masked := slices.Clone(list)
	for i := range masked {
		for _, text := range []*string{&masked[i].Subject, &masked[i].Place, &masked[i].Why} {
			*text = c.Masked(*text)
		}
	}
	return masked
}

// MaskedRecord returns r with the secrets of this run masked in a notice and in the reason of a failed call or run.
func (c *Console) MaskedRecord(r host.Record) host.Record {
	switch b := r.Body.(type) {
	case *host.NoticeRecord:
		if text := c.Masked(b.Text); text != b.Text {
			made := *b
			made.Text, r.Body = text, &made
		}
	case *host.ResultRecord:
		if why := c.Masked(b.Why); why != b.Why {
			made := *b
			made.Why, r.Body = why, &made
		}
	case *host.RunEndRecord:
		if why := c.Masked(b.Why); why != b.Why {
			made := *b
			made.Why, r.Body = why, &made
		}
	}
	return r
}

// MaskedRecords applies MaskedRecord to each record.
func (c *Console) MaskedRecords(records []host.Record) []host.Record {
	masked := records
	for i, r := range records {
		if made := c.MaskedRecord(r); made.Body != r.Body {
			if &masked[0] == &records[0] {
				masked = slices.Clone(records)
			}
			masked[i] = made
		}
	}
	return masked
}

// MaskedJSON returns JSON with the secrets of this run masked.
func (c *Console) MaskedJSON(raw []byte) []byte {
	if masked, ok := c.Streams.Masker().KnownJSON(raw); ok {
		return masked
	}
	return []byte(c.Masked(string(raw))) // nested too deeply to be copied value by value
}

// MaskedCopy copies a value through its JSON, with the secrets of this run masked.
func MaskedCopy[T any](c *Console, v *T) (*T, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("masking secrets: %w", err)
	}
	made := new(T)
	d := json.NewDecoder(bytes.NewReader(c.MaskedJSON(raw)))
	d.UseNumber()
	// A number that is a secret becomes 0.
	if err := d.Decode(made); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		return nil, fmt.Errorf("masking secrets: %w", err)
	}
	return made, nil
}

// PrintMaskedJSON is like PrintJSON, but masks the secrets of this run.
func (c *Console) PrintMaskedJSON(v any) error {
	raw, err := jsonrpc.JSON(v).AppendJSON(nil)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return c.PrintIndented(c.MaskedJSON(raw))
}

// MaskError returns err with its text replaced by masked(text), or err itself if that changes nothing. err can be nil.
func MaskError(err error, masked func(string) string) error {
	if err == nil {
		return nil
	}
	if text := masked(err.Error()); text != err.Error() {
		return &maskedError{err, text}
	}
	return err
}

// A maskedError is an error with masked secrets in its text.
type maskedError struct {
	err  error
	text string
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }
