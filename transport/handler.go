package transport

import (
	"errors"
	"reflect"
)

// CheckHandler returns an error if h is nil or a nil pointer. Transports call it
// where a program hands them a handler, so that the mistake shows there and not
// when the first client comes.
func CheckHandler(h Handler) error {
	if v := reflect.ValueOf(h); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("nil handler; give it a server, see server.New")
	}
	return nil
}
