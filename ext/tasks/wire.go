package tasks

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

const (
	// maxID is how long the identifier of a task or the key of a question may be that
	// another party gave, in bytes.
	maxID = 1024
	// maxOpen is how many open questions of a task a client accepts.
	maxOpen = 64
	// maxMillis is the greatest number of milliseconds that a time.Duration holds.
	maxMillis = math.MaxInt64 / int64(time.Millisecond)
)

// taskParams are the params of tasks/get and tasks/cancel.
type taskParams struct {
	TaskID string `json:"taskId"`
}

// updateParams are the params of tasks/update.
type updateParams struct {
	TaskID         string             `json:"taskId"`
	InputResponses mcp.InputResponses `json:"inputResponses"`
}

// A taskMessage is a task in a message: CreateTaskResult, GetTaskResult, and the
// params of notifications/tasks (ext-tasks, Tasks and Task Status).
type taskMessage struct {
	mcp.ResultBase

	TaskID         string            `json:"taskId"`
	Status         Status            `json:"status"`
	StatusMessage  string            `json:"statusMessage,omitzero"`
	CreatedAt      string            `json:"createdAt"`
	LastUpdatedAt  string            `json:"lastUpdatedAt"`
	TTLMs          mcp.RawValue      `json:"ttlMs"` // null is without end
	PollIntervalMs mcp.RawValue      `json:"pollIntervalMs,omitzero"`
	InputRequests  mcp.InputRequests `json:"inputRequests,omitzero"` // not nil if input_required
	Result         mcp.RawValue      `json:"result,omitzero"`
	Error          mcp.RawValue      `json:"error,omitzero"`
}

// wireTask is a task as tasks/get and notifications/tasks say it.
func wireTask(t *Task) *taskMessage {
	m := wireCreated(t)
	switch t.Status {
	case InputRequired:
		m.InputRequests = make(mcp.InputRequests, len(t.Questions))
		for _, q := range t.Questions {
			m.InputRequests[q.Key] = &mcp.InputRequest{Method: q.Method, Params: q.Params}
		}
	case Completed:
		m.Result = t.Result
	case Failed:
		e := t.Error
		if e == nil {
			e = jsonrpc.NewError(mcp.CodeInternalError, "the task failed")
		}
		m.Error, _ = e.AppendJSON(nil) // it has no other error than that of data, which it leaves out
	case Working, Cancelled:
	}
	return m
}

// wireCreated is a task without what CreateTaskResult never has: questions, result and
// error. The caller sets ResultType.
func wireCreated(t *Task) *taskMessage {
	m := &taskMessage{
		TaskID: t.ID, Status: t.Status, StatusMessage: t.Message,
		CreatedAt: formatTime(t.Created), LastUpdatedAt: formatTime(t.Updated),
		TTLMs: mcp.RawValue("null"),
	}
	if t.TTL > 0 {
		m.TTLMs = appendMillis(t.TTL)
	}
	if t.PollInterval > 0 {
		m.PollIntervalMs = appendMillis(t.PollInterval)
	}
	return m
}

// formatTime writes a time: RFC 3339, UTC, milliseconds. The layout of package time is
// several times as quick as one of our own.
func formatTime(t time.Time) string {
	b := t.UTC().AppendFormat(make([]byte, 0, 32), time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return string(append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z'))
}

// appendMillis is a time in whole milliseconds, at least one.
func appendMillis(d time.Duration) mcp.RawValue {
	return strconv.AppendInt(nil, max(1, d.Milliseconds()), 10)
}

// task is what the message says, as tasks/get and notifications/tasks say it, or what
// is wrong with it.
func (m *taskMessage) task() (*Task, error) {
	t, err := m.created()
	if err != nil {
		return nil, err
	}
	switch t.Status {
	case InputRequired:
		t.Questions, err = m.questions()
	case Completed:
		if _, err = strictjson.ParseObject(m.Result); err != nil {
			err = fmt.Errorf("result of a completed task: %w", absent(m.Result, err))
		}
		t.Result = m.Result
	case Failed:
		if t.Error, err = decodeError(m.Error); err != nil {
			err = fmt.Errorf("error of a failed task: %w", absent(m.Error, err))
		}
	case Working, Cancelled:
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// created is what the message says of a task, as CreateTaskResult says it: without
// questions, result and error.
func (m *taskMessage) created() (*Task, error) { return m.createdAs("ttlMs", "pollIntervalMs") }

// createdAs is created for messages with other names of two members.
func (m *taskMessage) createdAs(ttl, pollInterval string) (*Task, error) {
	t := &Task{ID: m.TaskID, Status: m.Status, Message: m.StatusMessage}
	if err := checkID("taskId", m.TaskID); err != nil {
		return nil, err
	}
	if m.Status != Working && m.Status != InputRequired && !m.Status.Ended() {
		return nil, fmt.Errorf("status: %.64q is no state of a task", string(m.Status))
	}
	var err error
	if t.Created, err = parseTime(m.CreatedAt); err != nil {
		return nil, fmt.Errorf("createdAt: %w", err)
	}
	if t.Updated, err = parseTime(m.LastUpdatedAt); err != nil {
		return nil, fmt.Errorf("lastUpdatedAt: %w", err)
	}
	if len(m.TTLMs) == 0 {
		return nil, fmt.Errorf("%s is missing; it is null for a task without end", ttl)
	}
	if string(m.TTLMs) != "null" {
		if t.TTL, err = parseMillis(m.TTLMs); err != nil {
			return nil, fmt.Errorf("%s: %w", ttl, err)
		}
		t.TTL = max(t.TTL, time.Millisecond) // 0 would be without end
	}
	if len(m.PollIntervalMs) > 0 {
		if t.PollInterval, err = parseMillis(m.PollIntervalMs); err != nil {
			return nil, fmt.Errorf("%s: %w", pollInterval, err)
		}
	}
	return t, nil
}

// questions are the open questions, in the order of their keys.
func (m *taskMessage) questions() ([]Question, error) {
	if m.InputRequests == nil {
		return nil, errors.New("inputRequests of a task with the status input_required is missing")
	}
	if n := len(m.InputRequests); n > maxOpen {
		return nil, fmt.Errorf("inputRequests: %d open questions, at most %d are accepted", n, maxOpen)
	}
	list := make([]Question, 0, len(m.InputRequests))
	for key, r := range m.InputRequests {
		if err := checkID("a key of inputRequests", key); err != nil {
			return nil, err
		}
		if r == nil || r.Method == "" {
			return nil, fmt.Errorf("inputRequests: %.64q has no method", key)
		}
		list = append(list, Question{Key: key, Method: r.Method, Params: r.Params})
	}
	slices.SortFunc(list, func(a, b Question) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

// checkID refuses an identifier that is empty or too long.
func checkID(name, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%s is missing or empty", name)
	case len(id) > maxID:
		return fmt.Errorf("%s has %d bytes, at most %d are accepted", name, len(id), maxID)
	}
	return nil
}

// parseTime reads a time.
func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, errors.New("it is missing or empty")
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%.64q is no time in the form 2006-01-02T15:04:05Z", s)
	}
	return t.UTC(), nil
}

// parseMillis reads a number of milliseconds. An integer may be spelled with a
// fraction of zeros; one that a time.Duration cannot hold is the greatest that it
// holds.
func parseMillis(raw mcp.RawValue) (time.Duration, error) {
	f, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), f != math.Trunc(f):
		return 0, errors.New("it is no integer")
	case f < 0:
		return 0, errors.New("it is negative")
	case f >= float64(maxMillis):
		return time.Duration(maxMillis) * time.Millisecond, nil
	}
	return time.Duration(f) * time.Millisecond, nil
}

// decodeError reads an error object of JSON-RPC.
func decodeError(raw mcp.RawValue) (*jsonrpc.Error, error) {
	var e struct {
		Code    *int64       `json:"code"`
		Message *string      `json:"message"`
		Data    mcp.RawValue `json:"data"`
	}
	if err := strictjson.Unmarshal(raw, &e); err != nil {
		return nil, err
	}
	if e.Code == nil || e.Message == nil {
		return nil, errors.New("an error has an integer code and a message")
	}
	return &jsonrpc.Error{Code: *e.Code, Message: *e.Message, Data: e.Data}, nil
}

// absent says of a member that is not there that it is missing.
func absent(raw mcp.RawValue, err error) error {
	if len(raw) == 0 {
		return errors.New("it is missing")
	}
	return err
}
