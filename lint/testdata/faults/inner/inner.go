// Package inner has a function like Printf.
package inner

import "fmt"

// Text formats a text.
func Text(format string, args ...any) string {
	return fmt.Sprintf(format, args...)
}

// Color is closed.
type Color int

// The colors.
const (
	Red Color = iota
	Blue
)
