package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/strictjson"
)

const (
	// handleVersion is the version of a saved handle.
	handleVersion = 1
	// maxHandle is how long a saved handle may be, in bytes, and maxSaved how many
	// questions it may hold.
	maxHandle = 1 << 20
	maxSaved  = 4096
)

// ErrHandle says that bytes are not a handle that this program reads.
var ErrHandle = errors.New("unusable handle of a task")

// A savedHandle is a handle as bytes.
type savedHandle struct {
	Version int             `json:"version"`
	TaskID  string          `json:"taskId"`
	Tool    string          `json:"tool"`
	Server  string          `json:"server,omitzero"` // its name, for errors
	Asked   []savedQuestion `json:"asked,omitzero"`
}

// A savedQuestion is one that a task has asked.
type savedQuestion struct {
	Key      string `json:"key"`
	Digest   string `json:"digest"`
	Answered bool   `json:"answered,omitzero"`
}

// MarshalBinary is what [Resume] takes in another process: the identifiers of the task
// and of the tool, the name of the server, and which questions were asked and answered.
// It holds no argument and no answer. Servers may take the identifier for proof of who is calling (ext-tasks,
// Security Considerations): keep the bytes where you keep such things. They are JSON, on
// one line. The error is [ErrNoTask] where there is no task.
//
// A handle that was saved before a question was answered is good as well: the server
// asks no more what it has the answer to.
func (h *Handle[Out]) MarshalBinary() ([]byte, error) {
	if h.h.id == "" {
		return nil, ErrNoTask
	}
	s := savedHandle{Version: handleVersion, TaskID: h.h.id, Tool: h.h.tool}
	if info := h.h.c.Server(); info != nil {
		s.Server = info.Name
	}
	for key, q := range h.h.asked.all() {
		s.Asked = append(s.Asked, savedQuestion{key, q.digest, q.state == askedAnswered})
	}
	slices.SortFunc(s.Asked, func(a, b savedQuestion) int { return strings.Compare(a.Key, b.Key) })
	return strictjson.Marshal(s)
}

// Resume takes up the handle that saved is of, from Handle.MarshalBinary, with a client
// of the same server. Out is the type that the tool gives. It asks for the state of the
// task: the error is [ErrUnknown] if the server does not know it, which is also so if it
// is another server, or the caller another one, and [ErrHandle] if saved is no handle.
func Resume[Out any](ctx context.Context, c *client.Client, saved []byte, o *WaitOptions) (*Handle[Out], error) {
	h, server, err := readHandle(c, saved, o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandle, err)
	}
	err = h.o.insist(ctx, func() (err error) {
		h.last, err = getTask(ctx, c, h.id)
		return err
	})
	switch info := c.Server(); {
	case err == nil:
		h.last.Tool = h.tool
		return &Handle[Out]{h}, nil
	case errors.Is(err, ErrUnknown) && server != "" && info != nil && info.Name != server:
		err = fmt.Errorf("%w; the handle is of a server that said it was %.64q, and this one says %.64q", err, server, info.Name)
	}
	return nil, h.wrap(err)
}

// Open returns a handle of a task of which only the identifier was kept, with a client of
// the server that gave it. tool is the name of its tool, for the handlers of questions and
// for errors; "" if it is not known. Nothing is sent: whether there is such a task the
// methods tell. [Resume] is for handles that were saved whole.
func Open[Out any](c *client.Client, id, tool string, o *WaitOptions) (*Handle[Out], error) {
	if err := checkID("the identifier of the task", id); err != nil {
		return nil, err
	}
	h := newHandle(c, tool, o)
	h.id, h.last = id, &Task{ID: id, Tool: tool, Status: InputRequired} // the state is asked for
	return &Handle[Out]{h}, nil
}

// readHandle reads a saved handle, and the name of its server.
func readHandle(c *client.Client, saved []byte, o *WaitOptions) (*handle, string, error) {
	var s savedHandle
	options := strictjson.Options{MaxBytes: maxHandle}
	err := strictjson.Unmarshal(saved, &s, &options)
	if err == nil && s.Version != handleVersion {
		err = fmt.Errorf("its version is %d, and this program reads version %d", s.Version, handleVersion)
	}
	if err == nil {
		options.RefuseUnknown = true
		err = strictjson.Unmarshal(saved, &s, &options)
	}
	switch {
	case err != nil:
		return nil, "", err
	case s.Tool == "":
		return nil, "", errors.New("tool is missing or empty")
	case len(s.Asked) > maxSaved:
		return nil, "", fmt.Errorf("it has %d questions, at most %d are read", len(s.Asked), maxSaved)
	}
	if err := checkID("taskId", s.TaskID); err != nil {
		return nil, "", err
	}
	h := newHandle(c, s.Tool, o)
	h.id = s.TaskID
	h.asked.list = make(map[string]asked, len(s.Asked))
	for _, q := range s.Asked {
		if err := checkID("the key of a question", q.Key); err != nil {
			return nil, "", err
		}
		if _, twice := h.asked.list[q.Key]; twice || q.Digest == "" {
			return nil, "", fmt.Errorf("question %.64q: it is there twice, or has no digest", q.Key)
		}
		state := askedOpen
		if q.Answered {
			state = askedAnswered
		}
		h.asked.list[q.Key] = asked{q.Digest, state}
	}
	return h, s.Server, nil
}
