package streamable

import (
	"net/http"
	"strings"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// Names of headers as net/http keeps them.
const (
	headerSession   = "Mcp-Session-Id"
	headerVersion   = "Mcp-Protocol-Version"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	headerParam     = "Mcp-Param-"
	headerLastEvent = "Last-Event-Id"
)

// A head is what the headers of a request say, found in one pass over them.
type head struct {
	accept, contentType, contentEncoding      []string
	version, session, method, name, lastEvent []string
	params                                    bool            // there are Mcp-Param-* headers
	named                                     *revision.Facts // of the first version, if that is known
	stateless                                 bool            // a version is one without handshake (ruling 1)
}

// read reads a header.
func (hd *head) read(header http.Header) {
	for name, values := range header {
		switch name {
		case "Accept":
			hd.accept = values
		case "Content-Type":
			hd.contentType = values
		case "Content-Encoding":
			hd.contentEncoding = values
		case headerVersion:
			hd.readVersion(values)
		case headerSession:
			hd.session = values
		case headerMethod:
			hd.method = values
		case headerName:
			hd.name = values
		case headerLastEvent:
			hd.lastEvent = values
		default:
			hd.params = hd.params || isParam(name)
		}
	}
}

func (hd *head) readVersion(values []string) {
	hd.version = values
	for i, version := range values {
		f, ok := revision.Lookup(version)
		if ok && i == 0 {
			hd.named = f
		}
		hd.stateless = hd.stateless || ok && !f.Handshake
	}
}

// isParam reports whether a header is a parameter's. The second hyphen is looked
// at first: few others have one there.
func isParam(name string) bool {
	return len(name) > len(headerParam) && name[len(headerParam)-1] == '-' && strings.EqualFold(name[:len(headerParam)], headerParam)
}

// nullID says how an error without id is written to a client of which nothing
// is known but its header (ruling 9).
func (hd *head) nullID() bool { return hd.named == nil || hd.named.NullID }

// route reads what the headers say about a message. What cannot be read is
// noted: whether that refuses the request is for the core to say.
func (hd *head) route(route *transport.Route, header http.Header) {
	route.Carried = true
	route.Version = readField(route, headerVersion, hd.version, false)
	route.Method = readField(route, headerMethod, hd.method, false)
	route.Name = readField(route, headerName, hd.name, true)
	if !hd.params {
		return
	}
	route.Fields = make(map[string][]string)
	for name, values := range header {
		if !isParam(name) {
			continue
		}
		field := strings.ToLower(name[len(headerParam):])
		route.Fields[field] = append(route.Fields[field], readField(route, name, values, true))
		if len(route.Fields[field]) > 1 && route.Invalid == "" {
			route.Invalid = "header " + name + ": " + errDoubled // under names that differ in letter case
		}
	}
}

const errDoubled = "it is there more than once; send it once"

// readField reads a header that must be there at most once. What is wrong with
// it is noted for a person.
func readField(route *transport.Route, name string, values []string, decode bool) (value string) {
	wrong := ""
	switch {
	case len(values) == 0:
		return ""
	case len(values) > 1:
		wrong = errDoubled
	case decode:
		text, err := decodeHeader(values[0])
		if err == nil {
			return text
		}
		wrong = err.Error()
	case plain(values[0]):
		return values[0]
	default:
		wrong = errHeaderByte.Error()
	}
	if route.Invalid == "" {
		route.Invalid = "header " + name + ": " + wrong
	}
	return ""
}

// acceptedForms reports whether a client takes an answer as JSON, and as an event stream. Without
// an Accept header it takes anything (ruling 14).
func acceptedForms(accept []string) (json, events bool) {
	if len(accept) == 0 || len(accept) == 1 && accept[0] == "application/json, text/event-stream" {
		return true, true
	}
	return accepts(accept, "application", "json"), accepts(accept, "text", "event-stream")
}

// accepts reports whether the Accept header takes the media type: the most
// specific range that covers it has a quality above 0 (RFC 9110, 12.5.1).
func accepts(accept []string, class, subtype string) bool {
	best, ok := 0, false
	empty := true
	for _, line := range accept {
		for item := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(item, ";")
			media = strings.Trim(media, " \t")
			if media == "" {
				continue
			}
			empty = false
			switch rank := covers(media, class, subtype); {
			case rank > best:
				best, ok = rank, !refused(params)
			case rank > 0 && rank == best:
				ok = ok || !refused(params)
			}
		}
	}
	return ok || empty
}

// covers says how specifically a media range covers a type: 0 is not at all.
func covers(media, class, subtype string) int {
	c, s, _ := strings.Cut(media, "/")
	switch {
	case strings.EqualFold(c, class) && strings.EqualFold(s, subtype):
		return 3
	case strings.EqualFold(c, class) && s == "*":
		return 2
	case c == "*" && s == "*":
		return 1
	}
	return 0
}

// refused reports whether the parameters of a media range have a quality of 0.
func refused(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.Trim(name, " \t"), "q") {
			return strings.Trim(strings.Trim(value, " \t"), "0.") == ""
		}
	}
	return false
}

// isJSON reports whether a body is said to be JSON in UTF-8.
func isJSON(contentType []string) bool {
	if len(contentType) != 1 {
		return false
	}
	return contentType[0] == "application/json" || web.IsJSON(contentType[0])
}

// isIdentity reports whether a body is said to be sent as it is. Nothing is
// decompressed: a small body must not become a large one.
func isIdentity(contentEncoding []string) bool {
	for _, line := range contentEncoding {
		for coding := range strings.SplitSeq(line, ",") {
			if coding = strings.Trim(coding, " \t"); coding != "" && !strings.EqualFold(coding, "identity") {
				return false
			}
		}
	}
	return true
}
