package trace

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/host"
)

// maxShown is how many bytes of a message, header or body the text shows.
const maxShown = 2000

// indent stands before what belongs to the line above.
const indent = "             "

// Text returns a Writer of lines for people. What others wrote is escaped.
func Text(w io.Writer) Writer {
	return func(e *Event) error {
		_, err := io.WriteString(w, e.text())
		return err
	}
}

// text is an event as lines.
func (e *Event) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.3f s  ", e.Ms/1000)
	more := ""
	switch e.Kind {
	case "step":
		b.WriteString(words(e.Step, e.Detail, took(e.TookMs, "took")))
	case "request":
		b.WriteString(words("http", "→", e.HTTP.Method, e.HTTP.URL, e.exchange()))
		more = e.HTTP.headers() + content(e.Text)
	case "response":
		if e.HTTP != nil {
			b.WriteString(words("http", "←", strconv.Itoa(e.HTTP.Status), e.HTTP.Proto, e.exchange()))
			more = e.HTTP.headers()
		} else {
			b.WriteString(words("http", "←", e.exchange()))
		}
	case "body":
		b.WriteString(words("http", "←", "body", size(e.Bytes), e.exchange()))
		more = content(e.Text)
	case "sent", "received":
		arrow := "→"
		if e.Kind == "received" {
			arrow = "←"
		}
		b.WriteString(words(arrow, cmp.Or(e.Type, "empty event"), e.Method, e.id(), size(e.Bytes), took(e.TookMs, "after"), e.event(), e.exchange()))
		more = content(string(e.Message) + e.Text)
	case "refused":
		b.WriteString(words("←", "refused", size(e.Bytes), e.exchange()))
		more = content(string(e.Message) + e.Text)
	case "stderr":
		b.WriteString("stderr   " + cut(host.EscapeLine(e.Text)))
	case "closed":
		b.WriteString(words("closed", e.link()))
	}
	if e.Error != "" {
		b.WriteString(": " + cut(host.EscapeLine(e.Error)))
	}
	return b.String() + "\n" + more
}

// words joins what is not empty.
func words(list ...string) string {
	for i, w := range list {
		list[i] = cut(host.EscapeLine(w))
	}
	return strings.Join(slices.DeleteFunc(list, func(w string) bool { return w == "" }), "  ")
}

func (e *Event) exchange() string {
	if e.Exchange == 0 {
		return ""
	}
	return "exchange " + strconv.FormatUint(e.Exchange, 10)
}

func (e *Event) link() string { return "connection " + strconv.FormatUint(e.Link, 10) }

func (e *Event) id() string {
	if len(e.ID) == 0 {
		return ""
	}
	return "id " + string(e.ID)
}

func (e *Event) event() string {
	if e.EventID == "" {
		return ""
	}
	return "event " + e.EventID
}

func size(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return strconv.Itoa(n) + " bytes"
}

func took(ms float64, before string) string {
	if ms == 0 {
		return ""
	}
	return before + " " + strconv.FormatFloat(ms, 'f', -1, 64) + " ms"
}

// headers are the fields of a head, one a line.
func (h *Head) headers() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h.Header)) {
		for _, v := range h.Header[name] {
			b.WriteString(indent + cut(host.EscapeLine(name+": "+v)) + "\n")
		}
	}
	return b.String()
}

// content is a message or body as one line.
func content(text string) string {
	if text == "" {
		return ""
	}
	return indent + cut(host.EscapeLine(text)) + "\n"
}

// cut shortens a text.
func cut(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + fmt.Sprintf("… (%d bytes more)", len(text)-maxShown)
}
