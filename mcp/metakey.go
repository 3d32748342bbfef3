package mcp

import (
	"errors"
	"fmt"
	"strings"
)

// The keys of `_meta` that the protocol reserves (basic/index, "_meta").
const (
	MetaProgressToken      = "progressToken"
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaTraceParent        = "traceparent"
	MetaTraceState         = "tracestate"
	MetaBaggage            = "baggage"
)

// ValidExtension checks the identifier of an extension: a key of `_meta` with a
// prefix (basic/versioning). The error says what is wrong.
func ValidExtension(id string) error {
	if !strings.Contains(id, "/") {
		return errors.New("the identifier needs a prefix, such as com.example/")
	}
	return ValidMetaKey(id)
}

// ValidMetaKey checks the form of a key of `_meta`: an optional prefix of
// labels between dots and a slash, then a name (basic/index, "Key name
// format"). The error says which part is wrong.
func ValidMetaKey(key string) error {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		prefix, name = "", key
	}
	if found {
		for label := range strings.SplitSeq(prefix, ".") {
			if err := validLabel(label); err != nil {
				return fmt.Errorf("_meta key %q: prefix: %w", key, err)
			}
		}
	}
	if err := validName(name); err != nil {
		return fmt.Errorf("_meta key %q: %w", key, err)
	}
	return nil
}

// ReservedMetaKey reports whether a key is the protocol's own, so that user code
// may not set it: the keys without prefix that the specification names, and
// every prefix whose second label is mcp or modelcontextprotocol.
func ReservedMetaKey(key string) bool {
	switch key {
	case MetaProgressToken, MetaTraceParent, MetaTraceState, MetaBaggage:
		return true
	}
	prefix, _, found := strings.Cut(key, "/")
	if !found {
		return false
	}
	_, rest, found := strings.Cut(prefix, ".")
	if !found {
		return false
	}
	second, _, _ := strings.Cut(rest, ".")
	return strings.EqualFold(second, "mcp") || strings.EqualFold(second, "modelcontextprotocol")
}

func validLabel(label string) error {
	if label == "" {
		return errors.New("empty label")
	}
	if !letter(label[0]) || !alphanumeric(label[len(label)-1]) {
		return fmt.Errorf("label %q must start with a letter and end with a letter or digit", label)
	}
	for i := range len(label) {
		if !alphanumeric(label[i]) && label[i] != '-' {
			return fmt.Errorf("label %q may hold letters, digits and hyphens only", label)
		}
	}
	return nil
}

func validName(name string) error {
	if name == "" {
		return nil
	}
	if !alphanumeric(name[0]) || !alphanumeric(name[len(name)-1]) {
		return fmt.Errorf("name %q must begin and end with a letter or digit", name)
	}
	for i := range len(name) {
		if !alphanumeric(name[i]) && !strings.ContainsRune("-_.", rune(name[i])) {
			return fmt.Errorf("name %q may hold letters, digits, hyphens, underscores and dots only", name)
		}
	}
	return nil
}

func letter(c byte) bool       { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func alphanumeric(c byte) bool { return letter(c) || '0' <= c && c <= '9' }
