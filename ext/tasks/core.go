package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

// The face of tasks in the revisions in which they are part of the core, as an experiment:
// the client asks for a task by a member of params, its questions come while it waits in
// tasks/result, and the result is told there alone. Tasks are the same, and so is the store.
//
// spec 2025-11-25, basic/utilities/tasks.

const (
	methodResult = "tasks/result"
	methodList   = "tasks/list"
	notifyStatus = "notifications/tasks/status"
	memberTasks  = "tasks" // of the capabilities
	metaRelated  = "io.modelcontextprotocol/related-task"

	// listPage is how many tasks a page of tasks/list has.
	listPage = 100
)

// coreTasks declares tasks. What belongs to a caller can be listed only where callers are told
// apart.
var coreTasks = server.Capability{
	Name: memberTasks, Revisions: server.CoreTasks,
	Value:      map[string]any{"cancel": empty, "requests": toolsCall},
	Identified: map[string]any{"list": empty, "cancel": empty, "requests": toolsCall},
}

var (
	empty     = map[string]any{}
	toolsCall = map[string]any{"tools": map[string]any{"call": empty}}
)

// coreMethods are the methods of these revisions.
func (t *manager) coreMethods() []*server.ExtensionMethod {
	with := server.MethodOptions{Target: targetTask, Revisions: server.CoreTasks, Anyone: true}
	waits := with
	waits.Asks, waits.Long = true, true
	return []*server.ExtensionMethod{
		server.Method(MethodGet, t.coreGet).With(with),
		server.Method(MethodCancel, t.coreCancel).With(with),
		server.Method(methodResult, t.coreResult).With(waits),
		server.Method(methodList, t.coreList).With(server.MethodOptions{Revisions: server.CoreTasks, Anyone: true}),
	}
}

// coreMembers say in the list of tools which calls may be tasks.
func (t *manager) coreMembers(_ server.Item, def *mcp.Tool, in server.Revisions) map[string]any {
	if in&server.CoreTasks == 0 {
		return nil
	}
	support := ""
	switch t.tool(def.Name).Mode {
	case May:
		support = supportOptional
	case Must:
		support = supportRequired
	default:
		return nil
	}
	return map[string]any{"execution": map[string]string{"taskSupport": support}}
}

// A coreTask is a task in a message of these revisions.
type coreTask struct {
	TaskID        string       `json:"taskId"`
	Status        Status       `json:"status"`
	StatusMessage string       `json:"statusMessage,omitzero"`
	CreatedAt     string       `json:"createdAt"`
	LastUpdatedAt string       `json:"lastUpdatedAt"`
	TTL           mcp.RawValue `json:"ttl"`
	PollInterval  mcp.RawValue `json:"pollInterval,omitzero"`
}

func wireCore(task *Task) *coreTask {
	m := wireCreated(task)
	if task.Status == Completed && saysError(task.Result) {
		m.Status = Failed // "this includes cases where the tool call result has isError set to true"
		m.StatusMessage = cmp.Or(errorText(task.Result), m.StatusMessage)
	}
	return &coreTask{m.TaskID, m.Status, m.StatusMessage, m.CreatedAt, m.LastUpdatedAt, m.TTLMs, m.PollIntervalMs}
}

// saysError reports whether a result of a tool says that it is an error.
func saysError(result mcp.RawValue) bool {
	o, err := strictjson.ParseObject(result)
	if err != nil {
		return false
	}
	raw, _ := o.Member("isError")
	return string(raw) == "true"
}

// errorText is the beginning of the first text of a result of a tool, or "".
func errorText(result mcp.RawValue) string {
	var r mcp.CallToolResult
	if err := strictjson.Unmarshal(result, &r); err != nil {
		return ""
	}
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			return short(text.Text)
		}
	}
	return ""
}

// coreCreated is the answer to a call that has become a task.
type coreCreated struct {
	Task *coreTask `json:"task"`
}

// coreCall serves a call of a tool in these revisions.
func (t *manager) coreCall(c *server.Call, tool Tool, next server.Func) (server.Result, error) {
	raw, asked := c.Param(memberTask)
	switch {
	case tool.Mode == Must && !asked:
		return nil, mcp.NewError(mcp.CodeMethodNotFound, "the tool %q runs as a task only; call it with the member task", c.Target())
	case tool.Mode == Never && asked:
		return nil, mcp.NewError(mcp.CodeMethodNotFound, "the tool %q cannot run as a task; call it without the member task", c.Target())
	case !asked:
		return next(c)
	}
	var p struct {
		TTL *float64 `json:"ttl"`
	}
	if err := strictjson.Unmarshal(raw, &p); err != nil {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "/task%v", err)
	}
	if p.TTL != nil {
		if *p.TTL < 0 {
			return nil, mcp.NewError(mcp.CodeInvalidParams, "/task/ttl: expected a number of milliseconds, got %v", *p.TTL)
		}
		const most = float64(endless / time.Millisecond)
		ttl := max(time.Duration(min(*p.TTL, most))*time.Millisecond, time.Millisecond)
		if tool.TTL == 0 || ttl < tool.TTL {
			tool.TTL = ttl
		}
	}
	task, err := t.begin(c, tool, next)
	if err != nil {
		return nil, err
	}
	t.follow(c, task.ID)
	return &coreCreated{wireCore(task)}, nil
}

func (t *manager) coreGet(c *server.Call, p taskParams) (*coreTask, error) {
	task, err := t.find(c, p.TaskID)
	if err != nil {
		return nil, err
	}
	return wireCore(task), nil
}

// coreCancel ends a task, which "MUST transition to cancelled status before sending the
// response"; one that has ended is refused.
func (t *manager) coreCancel(c *server.Call, p taskParams) (*coreTask, error) {
	before, err := t.find(c, p.TaskID)
	if err != nil {
		return nil, err
	}
	task := before
	if !before.Status.Ended() {
		if task, err = t.store.Cancel(c, p.TaskID, c.Principal().Identity(), cancelledByClient); err != nil {
			return nil, t.refusal("cancelling a task", err)
		}
		t.changed(p.TaskID)
	}
	if before.Status.Ended() || task.Status != Cancelled {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "the task has ended already: it is %s", wireCore(task).Status)
	}
	return wireCore(task), nil
}

// coreListed is a page of tasks.
type coreListed struct {
	Tasks []*coreTask `json:"tasks"`
	mcp.Page
}

// listParams are the params of tasks/list.
type listParams struct {
	Cursor *string `json:"cursor,omitzero"`
}

func (t *manager) coreList(c *server.Call, p listParams) (*coreListed, error) {
	if c.Principal().Anonymous() {
		return nil, mcp.NewError(mcp.CodeMethodNotFound, "tasks are listed to callers that are signed in")
	}
	after := ""
	if p.Cursor != nil {
		var err error
		if after, err = c.OpenCursor(*p.Cursor); err != nil {
			return nil, err
		}
	}
	list, err := t.store.List(c, Query{Owner: c.Principal().Identity(), After: after, Most: listPage + 1})
	if errors.Is(err, ErrUnknown) {
		return nil, mcp.NewError(mcp.CodeInvalidParams, "the cursor is of a task that was deleted after its time; list from the beginning")
	}
	if err != nil {
		return nil, t.failed("listing tasks", err)
	}
	page := &coreListed{Tasks: make([]*coreTask, 0, len(list))}
	for _, task := range list[:min(len(list), listPage)] {
		if task.Status == Completed { // the list has no results, and one may say isError
			task, err = t.store.Get(c, task.ID, c.Principal().Identity())
			if errors.Is(err, ErrUnknown) {
				continue // it was deleted meanwhile
			}
			if err != nil {
				return nil, t.failed("listing tasks", err)
			}
		}
		page.Tasks = append(page.Tasks, wireCore(task))
	}
	if len(list) > listPage {
		page.NextCursor = new(c.SealCursor(list[listPage-1].ID))
	}
	return page, nil
}

// coreResult waits for the end of a task, and asks its client what the task asks meanwhile.
func (t *manager) coreResult(c *server.Call, p taskParams) (mcp.RawValue, error) {
	ctx, stop := context.WithCancel(c)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()                                // the questions of a task that has ended are taken back
	open := make(map[string]context.CancelFunc) // ends the asking of a question
	failed := make(chan error, 1)
	for {
		changed, release := t.waitFor(p.TaskID)
		task, err := t.find(c, p.TaskID)
		if err != nil || task.Status.Ended() {
			release()
			if err != nil {
				return nil, err
			}
			return coreOutcome(task)
		}
		for key, end := range open { // it was answered by another request, or withdrawn
			if task.question(key) < 0 {
				end()
				delete(open, key)
			}
		}
		for _, q := range task.Questions {
			if open[q.Key] != nil {
				continue
			}
			one, end := context.WithCancel(ctx)
			open[q.Key] = end
			asking.Go(func() { t.coreAskInTime(c.WithContext(one), task.ID, &q, failed) })
		}
		select {
		case <-changed:
		case err = <-failed:
		case <-c.Done():
			err = context.Cause(c)
		}
		release()
		if err != nil {
			return nil, err
		}
	}
}

// coreAskInTime asks the client a question of a task, and sends on failed why that could not
// be done, unless the request has ended.
func (t *manager) coreAskInTime(c *server.Call, id string, q *Question, failed chan<- error) {
	if err := t.coreAsk(c, id, q); err != nil && c.Err() == nil {
		select {
		case failed <- err:
		default:
		}
	}
}

// coreAsk asks the client a question of a task within tasks/result. A client that sent tasks/result
// twice may answer either. A refusal ends the task; with any other failure the request fails.
func (t *manager) coreAsk(c *server.Call, id string, q *Question) error {
	related := map[string]mcp.RawValue{metaRelated: related(id)}
	var params mcp.Params
	var base *mcp.RequestBase
	switch q.Method {
	case mcp.MethodElicit:
		p := new(mcp.ElicitParams)
		params, base = p, &p.RequestBase
	case mcp.MethodCreateMessage:
		p := new(mcp.CreateMessageParams)
		params, base = p, &p.RequestBase
	case mcp.MethodRootsList:
		p := new(mcp.ListRootsParams)
		params, base = p, &p.RequestBase
	}
	if params == nil {
		return fmt.Errorf("tasks: %q is no question", q.Method)
	}
	if len(q.Params) > 0 {
		if err := strictjson.Unmarshal(q.Params, params); err != nil {
			return fmt.Errorf("tasks: the question of a task: %w", err)
		}
	}
	base.Meta.Extra = related
	answer, err := server.Ask(c, params, &server.AskOptions{Key: q.Key})
	if err == nil {
		err = server.CheckAnswer(q.Method, q.Params, answer)
	}
	if err != nil && c.Err() != nil {
		return err
	}
	owner := c.Principal().Identity()
	switch {
	case errors.Is(err, server.ErrRefused):
		// The person will not answer, and there is no answer that says so: the task cannot
		// go on, unless another request has the answer.
		task, failed := t.store.Get(c, id, owner)
		if failed != nil || task.question(q.Key) < 0 {
			return failed
		}
		_, err = t.store.Cancel(c, id, owner, fmt.Sprintf("a question was not answered: %v", err))
	case err != nil:
		return err // the client may have left; the question stays open, for a later request
	default:
		_, err = t.store.Answer(c, id, owner, mcp.InputResponses{q.Key: slices.Clone(answer)})
	}
	t.changed(id)
	return err
}

// related is the value that a message carries which belongs to a task.
func related(id string) mcp.RawValue {
	return mcp.RawValue(`{"taskId":` + strconv.Quote(id) + `}`)
}

// coreOutcome is "exactly what the underlying request would have returned", and which task it
// belongs to.
func coreOutcome(task *Task) (mcp.RawValue, error) {
	switch e := task.Error; {
	case task.Status == Cancelled:
		return nil, mcp.NewError(mcp.CodeInternalError, "the task was cancelled: %s", task.Message)
	case e != nil:
		return nil, mcp.NewError(e.Code, "%s", e.Message).With(e.Data)
	case task.Status == Failed:
		return nil, mcp.NewError(mcp.CodeInternalError, "the task failed")
	}
	o, err := strictjson.ParseObject(task.Result)
	if err != nil {
		return nil, fmt.Errorf("tasks: the result of a task: %w", err)
	}
	members, meta := make(map[string]mcp.RawValue), make(map[string]mcp.RawValue)
	for name, value := range o.All() {
		members[name] = value
	}
	delete(members, "resultType") // of a task that was made in a later revision
	if raw, ok := members["_meta"]; ok {
		if err := strictjson.Unmarshal(raw, &meta); err != nil {
			return nil, fmt.Errorf("tasks: the result of a task: %w", err)
		}
	}
	if meta == nil { // _meta was null
		meta = make(map[string]mcp.RawValue)
	}
	meta[metaRelated] = related(task.ID)
	if members["_meta"], err = strictjson.Marshal(meta); err != nil {
		return nil, fmt.Errorf("tasks: the result of a task: %w", err)
	}
	return strictjson.Marshal(members)
}
