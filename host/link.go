package host

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// A link is what questions of one server need to know of it.
type link struct {
	host    *Host
	spec    Server
	samples atomic.Int64 // uses of the model
	asked   atomic.Int64 // questions to the person

	mu       sync.Mutex
	underWay map[sessionCall]int // requests, by what they are for
}

// counted is a middleware that notes for which session requests are under way: a server
// may ask without saying during which. A subscription is no such request. It is the
// outermost: a panic of what carries the request out is an error of the request.
func (l *link) counted(next client.Func) client.Func {
	return func(ctx context.Context, r *client.Request) (result client.Result, err error) {
		defer recovered(l.host.opts.Logger, "a request to a server", &err)
		ctx = context.WithValue(ctx, linkKey{}, l)
		if c, ok := ctx.Value(sessionKey{}).(sessionCall); ok && r.Method() != mcp.MethodListen {
			l.count(c, 1)
			defer l.count(c, -1)
		}
		return next(ctx, r)
	}
}

// count adds to the requests that are under way.
func (l *link) count(c sessionCall, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.underWay == nil {
		l.underWay = make(map[sessionCall]int)
	}
	if l.underWay[c] += n; l.underWay[c] == 0 {
		delete(l.underWay, c)
	}
}

// calling are the sessions, and their calls, that requests are under way for.
func (l *link) calling() []sessionCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []sessionCall
	for c := range l.underWay {
		list = append(list, c)
	}
	return list
}
