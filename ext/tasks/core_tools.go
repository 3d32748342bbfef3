package tasks

import (
	"context"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// What execution.taskSupport of a tool says; anything else is "forbidden".
const (
	supportOptional = "optional"
	supportRequired = "required"
)

const (
	// knowTools is how long a client takes a list of tools for true.
	knowTools = 5 * time.Minute
	// maxTools and maxPages bound the list.
	maxTools = 10_000
	maxPages = 100
)

// coreTools is what clients know of the tools of their servers.
type coreTools struct {
	mu sync.Mutex
	of map[weak.Pointer[client.Client]]*toolSupport
}

// A toolSupport is what one client knows.
type toolSupport struct {
	turn  chan struct{} // held while the list is looked at, or asked for
	until time.Time
	tools map[string]string // those that may or must run as tasks
}

// support is the taskSupport of a tool, or "". The tools are listed if that was not done
// within knowTools. If they cannot be listed nothing is known, which is no error: the
// call goes out without a task, and the server says what it thinks of that.
func (k *coreTools) support(ctx context.Context, c *client.Client, tool string) (string, error) {
	s := k.find(c)
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	if !time.Now().Before(s.until) {
		tools, err := listSupport(ctx, c)
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			return "", nil
		}
		s.tools, s.until = tools, time.Now().Add(knowTools)
	}
	return s.tools[tool], nil
}

// find is what a client knows; it is forgotten with the client.
func (k *coreTools) find(c *client.Client) *toolSupport {
	key := weak.Make(c)
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.of[key]
	if s == nil {
		if k.of == nil {
			k.of = make(map[weak.Pointer[client.Client]]*toolSupport)
		}
		s = &toolSupport{turn: make(chan struct{}, 1)}
		k.of[key] = s
		runtime.AddCleanup(c, k.forget, key)
	}
	return s
}

func (k *coreTools) forget(key weak.Pointer[client.Client]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, key)
}

// listSupport lists the tools. [client.Client.Tools] has no member execution.
func listSupport(ctx context.Context, c *client.Client) (map[string]string, error) {
	found := make(map[string]string)
	var params listParams
	listed := 0
	for range maxPages {
		var raw mcp.RawValue
		if err := c.Request(ctx, mcp.MethodToolsList, params, &raw, nil); err != nil {
			return nil, err
		}
		var page struct {
			Tools      []mcp.RawValue `json:"tools"`
			NextCursor *string        `json:"nextCursor"`
		}
		if err := strictjson.Unmarshal(raw, &page); err != nil {
			return nil, err
		}
		for _, entry := range page.Tools {
			var tool struct {
				Name      string `json:"name"`
				Execution struct {
					TaskSupport string `json:"taskSupport"`
				} `json:"execution"`
			}
			if strictjson.Unmarshal(entry, &tool) != nil {
				continue // such a tool is not to be used
			}
			if s := tool.Execution.TaskSupport; s == supportOptional || s == supportRequired {
				found[tool.Name] = s
			}
		}
		if listed += len(page.Tools); page.NextCursor == nil || listed >= maxTools {
			break
		}
		params.Cursor = page.NextCursor
	}
	return found, nil
}
