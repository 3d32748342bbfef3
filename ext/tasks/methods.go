package tasks

import (
	"errors"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

func (t *manager) get(c *server.Call, p taskParams) (*taskMessage, error) {
	task, err := t.find(c, p.TaskID)
	if err != nil {
		return nil, err
	}
	return wireTask(task), nil
}

// find is a task that the caller of a request may know of.
func (t *manager) find(c *server.Call, id string) (*Task, error) {
	task, err := t.store.Get(c, id, c.Principal().Identity())
	if err != nil {
		return nil, t.refusal("reading a task", err)
	}
	// A tool that is not offered any more may have tasks.
	if err := c.MayCall(task.Tool); err != nil && !errors.Is(err, server.ErrNotFound) {
		return nil, err
	}
	return task, nil
}

// update keeps answers. Those of keys that are not open are ignored (ext-tasks, Task Update
// Requests: SHOULD); one that does not fit its question refuses the request, and none of
// its answers is kept.
func (t *manager) update(c *server.Call, p updateParams) (mcp.None, error) {
	task, err := t.find(c, p.TaskID)
	if err != nil {
		return mcp.None{}, err
	}
	answers, size := make(mcp.InputResponses), 0
	for _, q := range task.Questions {
		answer, ok := p.InputResponses[q.Key]
		if !ok {
			continue
		}
		if size += len(answer); over(size, t.opts.MaxAskBytes) {
			return mcp.None{}, mcp.NewError(mcp.CodeInvalidParams,
				"inputResponses have more than %d bytes (tasks.Options.MaxAskBytes); answer fewer questions at once, or shorter", t.opts.MaxAskBytes)
		}
		if err := server.CheckAnswer(q.Method, q.Params, answer); err != nil {
			return mcp.None{}, mcp.NewError(mcp.CodeInvalidParams, "inputResponses/%s: %v; the question is still open", q.Key, err)
		}
		answers[q.Key] = slices.Clone(answer) // params end with their request
	}
	if len(answers) == 0 {
		return mcp.None{}, nil
	}
	if _, err := t.store.Answer(c, p.TaskID, c.Principal().Identity(), answers); err != nil {
		return mcp.None{}, t.refusal("answering a task", err)
	}
	t.changed(p.TaskID)
	return mcp.None{}, nil
}

const cancelledByClient = "cancelled by the client"

// cancel ends a task. Its handler hears of it in the process where it runs.
func (t *manager) cancel(c *server.Call, p taskParams) (mcp.None, error) {
	if _, err := t.find(c, p.TaskID); err != nil {
		return mcp.None{}, err
	}
	if _, err := t.store.Cancel(c, p.TaskID, c.Principal().Identity(), cancelledByClient); err != nil {
		return mcp.None{}, t.refusal("cancelling a task", err)
	}
	t.changed(p.TaskID)
	return mcp.None{}, nil
}

// refusal is the error of a request for a task.
func (t *manager) refusal(doing string, err error) error {
	if errors.Is(err, ErrUnknown) {
		return mcp.NewError(mcp.CodeInvalidParams, "%w: it was never created here, was deleted after its time, or is of another caller", ErrUnknown)
	}
	return t.failed(doing, err)
}

// failed is the error of a request when the store refuses or fails.
func (t *manager) failed(doing string, err error) error {
	if full := new(LimitError); errors.As(err, &full) {
		return mcp.NewError(mcp.CodeInternalError, "%w", full) // not one that clients repeat: it may last for hours
	}
	return fmt.Errorf("tasks: %s: %w", doing, err)
}

// maxWatched bounds the tasks of one subscription.
const maxWatched = 1000

// filter reads which tasks a subscription wants to hear of. Those that do not exist for the
// caller are left out of the acknowledgement.
func (t *manager) filter(c *server.Call, value mcp.RawValue) (mcp.RawValue, []string, error) {
	if !c.HasExtension(ID) {
		return nil, nil, server.NeedExtension(ID)
	}
	var ids []string
	if err := strictjson.Unmarshal(value, &ids); err != nil {
		return nil, nil, mcp.NewError(mcp.CodeInvalidParams, "%s: expected an array of identifiers of tasks: %v", filterIDs, err)
	}
	if len(ids) > maxWatched {
		return nil, nil, mcp.NewError(mcp.CodeInvalidParams, "%s has %d tasks; one subscription has at most %d", filterIDs, len(ids), maxWatched)
	}
	owner := c.Principal().Identity()
	agreed := make([]string, 0, len(ids))
	for _, id := range ids {
		if slices.Contains(agreed, id) {
			continue
		}
		switch _, err := t.find(c, id); {
		case err == nil:
			agreed = append(agreed, id)
		case !errors.Is(err, ErrUnknown):
			return nil, nil, err
		}
	}
	if len(agreed) == 0 {
		return nil, nil, nil
	}
	t.watchFor(owner, agreed)
	ack, err := strictjson.Marshal(agreed)
	return ack, agreed, err
}
