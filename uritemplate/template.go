// Package uritemplate matches URIs against URI templates (RFC 6570) and binds
// their variables to typed structs. A template is compiled once; variables are
// percent-decoded exactly once, and values that could lead out of a folder are
// refused.
package uritemplate

import "errors"

// MaxURI is the greatest length of a URI or template in bytes.
const MaxURI = 8 << 10

// ErrVariable says that a template cannot carry a value of a variable.
var ErrVariable = errors.New("value cannot be carried by the template")

// Values are the variables of one URI, decoded. A plain variable has one
// value, an exploded one ({/path*}) one for each element; one that the URI
// leaves out has no entry.
type Values map[string][]string

// Get returns the first value of a variable, or "".
func (v Values) Get(name string) string {
	if list := v[name]; len(list) > 0 {
		return list[0]
	}
	return ""
}
