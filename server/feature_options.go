package server

import (
	"errors"
	"fmt"
	"reflect"
)

// restricting are the options that restrict a feature: who can use or see it, with which arguments
// and results, how often and for how long. Two values would leave open which one the author means.
var restricting = map[string]bool{
	"InputSchema": true, "Labels": true, "OutputSchema": true, "Rate": true, "Revisions": true, "Scopes": true, "Timeout": true, "Variant": true,
}

// mergeOptions sets the fields of options that are set in more. It returns an error for each
// restricting option that already has another value. Functions cannot be compared, so two of them
// differ.
func mergeOptions[T any](options *T, more T) error {
	var errs []error
	to, from := reflect.ValueOf(options).Elem(), reflect.ValueOf(&more).Elem()
	for i := range from.NumField() {
		was, now, name := to.Field(i), from.Field(i), from.Type().Field(i).Name
		if now.IsZero() {
			continue
		}
		if restricting[name] && !was.IsZero() && !reflect.DeepEqual(was.Interface(), now.Interface()) {
			errs = append(errs, fmt.Errorf("%s is set twice, to different values; leave one out", name))
		}
		was.Set(now)
	}
	return errors.Join(errs...)
}
