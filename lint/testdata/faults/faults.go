package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"example.org/faults/inner"
)

type Bare struct{} // want exported

var Value = 1

type holder struct {
	ctx context.Context // want containedctx
}

func unusedFunction() {} // want unused

// Faults uses what it should not.
func Faults(ctx context.Context, h *holder) error {
	fmt.Println("printed")                 // want forbidden
	log.Println("logged")                  // want forbidden
	os.Remove("x")                         // want errcheck
	r, err := http.Get("http://127.0.0.1") // want bodyclose noctx
	if err == io.EOF {                     // want errorlint
		return err
	}
	if err != nil {
		return nil // want nilerr
	}
	fmt.Fprintf(io.Discard, "%d", "text") // want errcheck govet staticcheck
	n :=  r.StatusCode // want gofumpt ineffassign staticcheck
	n = 2 // want ineffassign
	n = 3
	for i := range n {
		i := i // want copyloopvar
		h.ctx = context.WithValue(h.ctx, key{}, i)
	}
	_ = strings.Replace("a", "a", "b", -1) // want staticcheck
	if n > 3 {
		return fmt.Errorf("bad: %v", err) // want errorlint
	}
	return errors.New("bad")
}

type key struct{}

// Kind is closed.
type Kind int

// The kinds.
const (
	First Kind = iota
	Second
)

// Name teh kind. // want misspell
func (k Kind) Name() string {
	switch k { // want exhaustive
	case First:
		return "first"
	}
	return ""
}

// Wrapped calls a function of another package that is like Printf.
func Wrapped() string {
	return inner.Text("%d", "text") // want govet
}

// Elsewhere switches over a closed type of another package.
func Elsewhere(c inner.Color) bool {
	switch c { // want exhaustive
	case inner.Red:
		return true
	}
	return false
}

// FaultsAgain repeats the name of its package.
func FaultsAgain() {} // want exported

// Known is an intended fault.
func Known() {
	os.Remove("x") //nolint:errcheck // it may be absent
	os.Remove("x") //nolint:errcheck
	_ = 1          //nolint:noctx // nothing to allow // want nolint
	_ = 2          //nolint:what // it is unknown // want nolint
}
