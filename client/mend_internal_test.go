package client

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
)

// The name of an item is found for each wrong part of it, and the item is read once.
func TestItems(t *testing.T) {
	of := items{result: wire.RawValue(`{"tools":[{"name":"a"},{"uri":"b"},{"name":5},7],"size":1}`)}
	for pointer, want := range map[string]string{
		"/tools/0/title": "a", "/tools/0": "a", "/tools/1/icons/0": "b", "/tools/2": "", "/tools/3": "", "/tools/4": "", "/tools": "", "/size/0": "", "/other/0": "",
	} {
		for range 2 {
			if got := of.at(pointer); got != want {
				t.Errorf("%s is of %q, want %q", pointer, got, want)
			}
		}
	}
	of = items{result: wire.RawValue(`{"tools":[{"name":"a","enum":[` + strings.Repeat(`"abcd",`, 1<<18) + `1]}]}`)}
	start := time.Now()
	of.at("/tools/0")
	once := time.Since(start)
	start = time.Now()
	for range 1000 {
		of.at("/tools/0/title")
	}
	if again := time.Since(start); again > 100*once {
		t.Errorf("%v for a thousand parts of an item, %v for one", again, once)
	}
}
