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

// isModern reports whether the header of a request names a revision without
// handshake (ruling 1).
func isModern(r *http.Request) bool {
	for _, version := range r.Header[headerVersion] {
		if f, ok := revision.Lookup(version); ok && !f.Handshake {
			return true
		}
	}
	return false
}

// nullID says how an error without id is written to a client of which nothing
// is known but its header (ruling 9).
func nullID(r *http.Request) bool {
	if f, ok := revision.Lookup(r.Header.Get(headerVersion)); ok {
		return f.NullID
	}
	return true
}

// readRoute reads what the headers say about a message. What cannot be read is
// noted: whether that refuses the request is for the core to say.
func readRoute(route *transport.Route, header http.Header) {
	route.Carried = true
	read := func(name string, decode bool) string {
		values := header[name]
		if len(values) == 0 {
			return ""
		}
		value, err := single(values, decode)
		if err != "" && route.Invalid == "" {
			route.Invalid = "header " + name + ": " + err
		}
		return value
	}
	route.Version = read(headerVersion, false)
	route.Method = read(headerMethod, false)
	route.Name = read(headerName, true)
	for name := range header {
		// The second hyphen is looked at first: few others have one there.
		if len(name) <= len(headerParam) || name[len(headerParam)-1] != '-' || !strings.EqualFold(name[:len(headerParam)], headerParam) {
			continue
		}
		if route.Fields == nil {
			route.Fields = make(map[string][]string)
		}
		field := strings.ToLower(name[len(headerParam):])
		route.Fields[field] = append(route.Fields[field], read(name, true))
		if len(route.Fields[field]) > 1 && route.Invalid == "" {
			route.Invalid = "header " + name + ": " + errDoubled // under names that differ in letter case
		}
	}
}

const errDoubled = "it is there more than once; send it once"

// single reads a header that must be there once. The second result says for a
// person what is wrong with it, if anything.
func single(values []string, decode bool) (value, wrong string) {
	if len(values) > 1 {
		return "", errDoubled
	}
	if decode {
		value, err := decodeHeader(values[0])
		if err != nil {
			return "", err.Error()
		}
		return value, ""
	}
	if !plain(values[0]) {
		return "", errHeaderByte.Error()
	}
	return values[0], ""
}

// acceptsBoth reports whether a client takes both forms of an answer. Without
// an Accept header it takes anything (ruling 14).
func acceptsBoth(accept []string) bool {
	if len(accept) == 0 || len(accept) == 1 && accept[0] == "application/json, text/event-stream" {
		return true
	}
	return accepts(accept, "application", "json") && accepts(accept, "text", "event-stream")
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
			rank := covers(media, class, subtype)
			if rank > best {
				best, ok = rank, false
			}
			if rank > 0 && rank == best {
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
