package tasks

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/internal/store/database"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// never is when a task expires that is kept without end.
const never = 1<<63 - 1

// stateColumns are those of a tasks.Task without what List leaves out.
const stateColumns = `id, tool, status, message, created, updated, ttl, poll, error`

// taskColumns are those of a tasks.Task.
const taskColumns = stateColumns + `, questions, result`

// A row is a task with what is needed to change it.
type row struct {
	task    *tasks.Task
	seq     int64
	token   int64
	lease   int64 // 0 once it was released
	parts   int64 // the number of the next row of task_parts
	answers mcp.InputResponses
	now     time.Time
	// changed says that the state of the task is another.
	changed bool
}

const rowColumns = taskColumns + `, seq, token, lease, parts, answers`

func scanRow(from scanner) (*row, error) {
	var r row
	var answers []byte
	var now int64
	t, err := scanTask(from, &r.seq, &r.token, &r.lease, &r.parts, &answers, &now)
	if err != nil {
		return nil, err
	}
	r.task, r.now, r.answers = t, moment(now), mcp.InputResponses{}
	return &r, decode(answers, &r.answers)
}

// A scanner is a *sql.Row or *sql.Rows.
type scanner interface{ Scan(into ...any) error }

// scanTask reads taskColumns, and more.
func scanTask(from scanner, more ...any) (*tasks.Task, error) {
	var questions, result []byte
	t, err := scanState(from, append([]any{&questions, &result}, more...)...)
	if err != nil {
		return nil, err
	}
	t.Result = bytes.Clone(result)
	return t, decode(questions, &t.Questions)
}

// scanState reads stateColumns, and more.
func scanState(from scanner, more ...any) (*tasks.Task, error) {
	var t tasks.Task
	var tool, message, failure []byte
	var created, updated int64
	into := []any{&t.ID, &tool, &t.Status, &message, &created, &updated, &t.TTL, &t.PollInterval, &failure}
	if err := from.Scan(append(into, more...)...); err != nil {
		return nil, err
	}
	t.Tool, t.Message, t.Created, t.Updated = string(tool), string(message), moment(created), moment(updated)
	var e *rpcError
	if err := decode(failure, &e); err != nil {
		return nil, err
	}
	if e != nil {
		t.Error = &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: e.Data}
	}
	return &t, nil
}

// rpcError is a jsonrpc.Error as it is stored.
type rpcError struct {
	Code    int64        `json:"code"`
	Message string       `json:"message"`
	Data    mcp.RawValue `json:"data,omitzero"`
}

func encodeError(e *jsonrpc.Error) ([]byte, error) {
	if e == nil {
		return []byte{}, nil
	}
	return encode(&rpcError{Code: e.Code, Message: e.Message, Data: e.Data})
}

// encode is a value as JSON, in which values that are JSON already are as they were, but
// for white space.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil, errValue
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// encodeList is a list or map as JSON; nothing for an empty one.
func encodeList(n int, v any) ([]byte, error) {
	if n == 0 {
		return []byte{}, nil
	}
	return encode(v)
}

// decode reads what encode wrote. Nothing is left as it is.
func decode(data []byte, v any) error {
	if len(data) > 0 && json.Unmarshal(data, v) != nil {
		return database.ErrUnreadable
	}
	return nil
}

// digest is an owner or what a caller is counted by, as it is stored.
func digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// storable says whether a text of others can be an identifier: PostgreSQL takes no other.
func storable(id string) bool { return utf8.ValidString(id) && !strings.Contains(id, "\x00") }

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// moment is a time that was stored.
func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// micros is a time or duration in whole microseconds, not less than it is.
func micros(d time.Duration) int64 {
	n := d.Microseconds()
	if d%time.Microsecond > 0 {
		n++
	}
	return n
}

// nullable is nil for no bytes, and so NULL.
func nullable(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

var _ scanner = (*sql.Row)(nil)
