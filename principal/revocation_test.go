package principal_test

import (
	"context"
	"errors"
	"testing"

	"github.com/parley-mcp/parley/principal"
)

// A call that outlives its request ends with the access of its caller, and with nothing else of the
// request.
func TestUntilRevoked(t *testing.T) {
	t.Parallel()
	request, leave := context.WithCancel(t.Context())
	request, revoke := principal.WithRevocation(request)
	defer revoke()
	call, end := principal.UntilRevoked(context.WithoutCancel(request), request)
	defer end()
	leave()
	if request.Err() == nil || call.Err() != nil {
		t.Fatalf("after the client left: request %v, call %v", request.Err(), call.Err())
	}
	revoke()
	<-call.Done()
	if err := context.Cause(call); !errors.Is(err, principal.ErrRevoked) {
		t.Errorf("the call ended with %v", err)
	}

	request, revoke = principal.WithRevocation(t.Context())
	revoke()
	if err := context.Cause(request); !errors.Is(err, principal.ErrRevoked) {
		t.Errorf("the request ended with %v", err)
	}

	// Of a caller that nobody asks about it is the same context.
	call, end = principal.UntilRevoked(t.Context(), context.Background())
	end()
	if call != t.Context() {
		t.Error("another context, though access is never revoked")
	}
}
