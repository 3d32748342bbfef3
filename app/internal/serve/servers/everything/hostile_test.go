package everything_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// corpus is the number of hostile lines in each session.
const corpus = 10_000

// A verdict is what a line must get.
type verdict struct {
	silent bool  // no answer at all
	id     int   // the id of the answer; 0: it has none
	code   int64 // the code of the error; 0: a result
	check  func(m *jsonrpc.Incoming) error
}

// hostile makes lines that are wrong, each with its verdict.
type hostile struct {
	*rand.Rand
	version string
	meta    string // as metaOf gives it
	batch   bool   // the revision has batches
	missing int64  // code for resources that do not exist
	id      int    // the last id
}

func newHostile(version string, seed uint64) *hostile {
	h := &hostile{Rand: rand.New(rand.NewPCG(seed, 4)), version: version, meta: metaOf(version), missing: -32002}
	h.batch = version == "2025-03-26"
	if version == newest {
		h.missing = -32602
	}
	return h
}

func (h *hostile) next() int { h.id++; return h.id }

func (h *hostile) of(list ...string) string { return list[h.IntN(len(list))] }

// call is a good call of the tool echo.
func (h *hostile) call(id int, message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s"name":"echo","arguments":{"message":%s}}}`, id, h.meta, message)
}

func refused(id int, code int64) verdict { return verdict{id: id, code: code} }

var silence = verdict{silent: true}

// Codes of JSON-RPC.
const (
	noJSON    = jsonrpc.CodeParseError
	noRequest = jsonrpc.CodeInvalidRequest
	noMethod  = jsonrpc.CodeMethodNotFound
	noParams  = jsonrpc.CodeInvalidParams
)

// kinds are the ways in which lines are wrong.
var kinds = []struct {
	name string
	make func(h *hostile) (string, verdict)
}{
	{"cut off after the id", func(h *hostile) (string, verdict) {
		id := h.next()
		line := h.call(id, `"hello"`)
		from := strings.Index(line, `"method"`)
		return line[:from+h.IntN(len(line)-from)], refused(id, noJSON)
	}},
	{"cut off before the id", func(h *hostile) (string, verdict) {
		line := `{"method":"tools/list","params":{` + strings.TrimSuffix(h.meta, ",") + `},"jsonrpc":"2.0","id":1}`
		return line[:1+h.IntN(strings.Index(line, `"id"`)-1)], refused(0, noJSON)
	}},
	{"noise", func(h *hostile) (string, verdict) {
		noise := []byte{'#'}
		for range h.IntN(200) {
			if c := byte(h.UintN(256)); c != '\n' {
				noise = append(noise, c)
			}
		}
		return string(noise), refused(0, noJSON)
	}},
	{"no object", func(h *hostile) (string, verdict) {
		return h.of(`5`, `"text"`, `null`, `true`, ` -0.1e5 `), refused(0, noRequest)
	}},
	{"a member twice", func(h *hostile) (string, verdict) {
		id := h.next()
		line := h.call(id, `"hello"`)
		twice := h.of(`"name":"echo"`, `"message":"hello"`, `"method":"tools/call"`)
		second := h.of(twice, strings.Replace(twice, "m", `\u006d`, 1))
		return strings.Replace(line, twice, twice+","+second, 1), refused(id, noJSON)
	}},
	{"two ids", func(h *hostile) (string, verdict) {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"id":%d,"method":"tools/list"}`, h.next(), h.next()), refused(0, noJSON)
	}},
	{"a member deep inside twice", func(h *hostile) (string, verdict) {
		id := h.next()
		return h.call(id, strings.Repeat(`{"a":`, 10)+`{"b":1,"c":2,"b":3}`+strings.Repeat(`}`, 10)), refused(id, noJSON)
	}},
	{"a name of the envelope in other letters", func(h *hostile) (string, verdict) {
		id := h.next()
		line := h.call(id, `"hello"`)
		member := h.of("JSONRPC", "Method", "METHOD", "Params", "pArams", "Result", "eRROR")
		return `{"` + member + `":` + h.of(`1`, `"tools/list"`, `{}`) + "," + line[1:], refused(id, noRequest)
	}},
	{"a name of the parameters in other letters", func(h *hostile) (string, verdict) {
		id := h.next()
		return strings.Replace(h.call(id, `"hello"`), `"name"`, `"`+h.of("Name", "NAME", "ARGUMENTS", "_Meta")+`":"drop-table","name"`, 1), refused(id, noParams)
	}},
	{"nested too deep", func(h *hostile) (string, verdict) {
		id, n := h.next(), 65+h.IntN(5000)
		return h.call(id, strings.Repeat(`[`, n)+strings.Repeat(`]`, n)), refused(id, noJSON)
	}},
	{"nested too deep and never closed", func(h *hostile) (string, verdict) {
		id := h.next()
		return strings.TrimRight(h.call(id, strings.Repeat(`{"a":`, 65+h.IntN(5000))), "}"), refused(id, noJSON)
	}},
	{"a strange URI", (*hostile).strangeURI},
	{"a wrong version", func(h *hostile) (string, verdict) {
		id := h.next()
		return strings.Replace(h.call(id, `"hello"`), `"jsonrpc":"2.0"`, h.of(`"jsonrpc":2.0`, `"jsonrpc":"1.0"`, `"jsonrpc":null`, `"jsonrpc":["2.0"]`, `"json":"2.0"`, `"jsonrpc":"2.0 "`), 1), refused(id, noRequest)
	}},
	{"a wrong id", func(h *hostile) (string, verdict) {
		id := h.of(`null`, `1.5`, `true`, `{}`, `[]`, `1e400`, `-1e-1`)
		return strings.Replace(h.call(0, `"hello"`), `"id":0`, `"id":`+id, 1), refused(0, noRequest)
	}},
	{"a wrong method", func(h *hostile) (string, verdict) {
		id := h.next()
		return strings.Replace(h.call(id, `"hello"`), `"tools/call"`, h.of(`5`, `null`, `{}`, `["tools/call"]`, `true`), 1), refused(id, noRequest)
	}},
	{"no method", func(h *hostile) (string, verdict) {
		id := h.next()
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"params":{}}`, id), refused(id, noRequest)
	}},
	{"method and result", func(h *hostile) (string, verdict) {
		id := h.next()
		return strings.Replace(h.call(id, `"x"`), `"method"`, `"`+h.of("result", "error")+`":{},"method"`, 1), refused(id, noRequest)
	}},
	{"wrong params", func(h *hostile) (string, verdict) {
		id := h.next()
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":%s}`, id, h.of(`5`, `"x"`, `true`, `false`, `-0`)), refused(id, noRequest)
	}},
	{"params as an array", func(h *hostile) (string, verdict) {
		id := h.next()
		code := int64(noParams)
		if h.meta != "" { // there is no place to say which revision it is
			code = noRequest
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, id, h.of(`[]`, `["echo"]`, `[{"name":"echo"}]`)), refused(id, code)
	}},
	{"members of wrong types", (*hostile).wrongTypes},
	{"broken text", func(h *hostile) (string, verdict) {
		id := h.next()
		broken := h.of("\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x01", "\x1f", "\t", `\x`, `\u12g4`, `\`)
		return h.call(id, `"a`+broken+`"`), refused(id, noJSON)
	}},
	{"half a character", func(h *hostile) (string, verdict) {
		id := h.next()
		return h.call(id, h.of(`"\ud800"`, `"\udc00"`, `"\ud800\ud800"`, `"\udfff\ud83d"`, `"\ud83dx"`)), refused(id, noJSON)
	}},
	{"text after the message", func(h *hostile) (string, verdict) {
		id := h.next()
		return h.call(id, `"hello"`) + h.of(`{}`, ` x`, `,`, `]`, "\x00", h.call(1, `"x"`)), refused(id, noJSON)
	}},
	{"unknown methods", func(h *hostile) (string, verdict) {
		id := h.next()
		method := h.of(`nosuch`, `tools/Call`, `tools/call `, `TOOLS/CALL`, ``, `\u0000`, `\u200btools/call`, `rpc.discover`, `notifications/initialized`, strings.Repeat("x", 5000))
		return strings.Replace(h.call(id, `"hello"`), "tools/call", method, 1), refused(id, noMethod)
	}},
	{"notifications that are wrong", func(h *hostile) (string, verdict) {
		return h.of(
			`{"jsonrpc":"2.0","method":"nosuch"}`,
			`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"message":"x"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"REQUESTID":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
			`{"jsonrpc":"1.0","method":"notifications/cancelled","params":{"requestId":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":"x"}}`,
			`{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"_meta":5}}`,
			`{"jsonrpc":"2.0","method":"notifications/\u0000"}`,
		), silence
	}},
	{"answers to nothing", func(h *hostile) (string, verdict) {
		return fmt.Sprintf(h.of(
			`{"jsonrpc":"2.0","id":%d,"result":{}}`,
			`{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"x"}}`,
			`{"jsonrpc":"2.0","id":%d,"result":5}`,
			`{"jsonrpc":"2.0","id":%d,"error":"x"}`,
			`{"jsonrpc":"2.0","id":%d,"error":{"code":"x","message":5}}`,
			`{"jsonrpc":"2.0","id":%d,"result":{},"error":{"code":1,"message":"x"}}`,
			`{"jsonrpc":"2.0","id":"%d","result":{}}`,
		), h.IntN(100)), silence
	}},
	{"nothing", func(h *hostile) (string, verdict) { return h.of("", " ", "\t", "\r", " \r"), silence }},
	{"arrays", func(h *hostile) (string, verdict) {
		if h.batch {
			return h.of(`[]`, ` [ ] `), refused(0, noRequest)
		}
		return h.of(`[]`, `[1]`, `[`, strings.Repeat(`[`, 5000), `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`), refused(0, noRequest)
	}},
	{"a batch that is none", func(h *hostile) (string, verdict) {
		code := int64(noRequest)
		line := h.of(`[{"jsonrpc":"2.0","id":1,"method":"ping"}`, strings.Repeat(`[`, 5000), `[{"jsonrpc":"2.0","id":1,"method":"ping"},]`, `[{"a":1,"a":2}]`)
		if h.batch {
			code = noJSON
		}
		return line, refused(0, code)
	}},
	{"a name that ends in NUL", func(h *hostile) (string, verdict) {
		// It is another name, which nobody knows: the tool is the one named.
		id := h.next()
		want := "hello " + strconv.Itoa(id)
		line := strings.Replace(h.call(id, `"`+want+`"`), `"name":"echo"`, `"name":"echo","name\u0000":"drop-table"`, 1)
		return line, verdict{id: id, check: says(want)}
	}},
}

// says checks the text of a result.
func says(want string) func(*jsonrpc.Incoming) error {
	return func(m *jsonrpc.Incoming) error {
		if got := text(m); got != want {
			return fmt.Errorf("the result is %q, want %q", got, want)
		}
		return nil
	}
}

// strangeURI reads what does not exist and has characters that are easily
// written wrongly. The answer must carry the very URI.
func (h *hostile) strangeURI() (string, verdict) {
	var b strings.Builder
	b.WriteString("demo://")
	for range 1 + h.IntN(8) {
		b.WriteString(h.of("\x00", "\a", "\x7f", "\u200b", "\u202e", "\ufeff", "\u2028", "\u0085", "\x1b[31m", "%00", "..", "/", "\\", `"`, "{x}", "é", "\U0001F600", "<b>", "%zz", "\U000E0041"))
	}
	uri, err := json.Marshal(b.String())
	if err != nil {
		panic(err) // a string can be written
	}
	id := h.next()
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{%s"uri":%s}}`, id, h.meta, uri)
	return line, verdict{id: id, code: h.missing, check: func(m *jsonrpc.Incoming) error {
		var data struct{ URI string }
		if err := json.Unmarshal(m.Error.Data, &data); err != nil {
			return fmt.Errorf("the error's data: %w", err)
		}
		if data.URI != b.String() {
			return fmt.Errorf("the error is about %q, want %q", data.URI, b.String())
		}
		return nil
	}}
}

// wrongTypes gives a known method a member of another type than it has.
func (h *hostile) wrongTypes() (string, verdict) {
	id := h.next()
	bad := []struct {
		method, member string
		values         []string
	}{
		{"tools/call", "name", []string{`5`, `null`, `{}`, `["echo"]`}},
		{"tools/call", "arguments", []string{`5`, `"x"`, `[1,2]`, `true`}},
		{"tools/list", "cursor", []string{`5`, `{}`, `["x"]`}},
		{"resources/read", "uri", []string{`5`, `{}`, `["demo://text"]`, `true`}},
		{"prompts/get", "name", []string{`5`, `{}`, `[]`}},
		{"prompts/get", "arguments", []string{`5`, `[]`, `{"name":5}`, `{"name":{}}`}},
		{"completion/complete", "ref", []string{`5`, `"x"`, `[]`, `{"type":5}`, `{"type":"ref/other"}`}},
		{"completion/complete", "argument", []string{`5`, `"x"`, `[]`, `{"name":5,"value":""}`}},
	}
	b := bad[h.IntN(len(bad))]
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%q:%s}}`, id, b.method, h.meta, b.member, h.of(b.values...)), refused(id, noParams)
}

// giants are lines over the limit, of which there are few: each takes time.
func (h *hostile) giants() (lines []string, verdicts []verdict) {
	huge := strings.Repeat("x", maxMessage)
	id := h.next()
	messages := []string{
		h.call(id, `"`+huge+`"`),
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"message":"` + huge + `"}},"id":1}`,
		`{"jsonrpc":"2.0","id":5,"result":{"x":"` + huge + `"}}`,
		"#" + huge,
		strings.Repeat(`{"a":`, maxMessage/5+1),
		strings.Repeat(" ", maxMessage+1) + `{}`,
	}
	return messages, []verdict{
		refused(id, noJSON), refused(0, noJSON), silence, refused(0, noJSON), refused(0, noJSON), refused(0, noJSON),
	}
}

// A hostileSession sends lines and settles accounts: what was to be answered,
// and what was.
type hostileSession struct {
	*rawClient
	h    *hostile
	open map[jsonrpc.ID]owed
	// bare counts the answers without id that are due, by code.
	bare   map[int64]int
	recent []string // lines since the last canary
}

type owed struct {
	line string
	verdict
}

// attack sends a line.
func (s *hostileSession) attack(line string, v verdict) {
	s.t.Helper()
	s.recent = append(s.recent, fmt.Sprintf("%.300q", line))
	switch {
	case v.silent:
	case v.id == 0:
		s.bare[v.code]++
	default:
		s.open[jsonrpc.IntID(int64(v.id))] = owed{line, v}
	}
	s.send([]byte(line))
}

// canary makes a good call and waits for its answer. Refusals without an id are
// written before the next line is read, so that by then none may be missing.
func (s *hostileSession) canary() {
	s.t.Helper()
	id := s.h.next()
	want := "canary " + strconv.Itoa(id)
	s.attack(s.h.call(id, `"`+want+`"`), verdict{id: id, check: says(want)})
	for answered := false; !answered; {
		m := s.next()
		answered = m.ID == jsonrpc.IntID(int64(id))
		s.settle(m)
	}
	for code, n := range s.bare {
		if n != 0 {
			s.t.Fatalf("%d answers without id and with code %d are missing, of:\n%s", n, code, strings.Join(s.recent, "\n"))
		}
	}
	s.recent = s.recent[:0]
}

// settle books an answer.
func (s *hostileSession) settle(m *jsonrpc.Incoming) {
	s.t.Helper()
	recent := func() string { return strings.Join(s.recent, "\n") }
	if m.Kind != jsonrpc.Response {
		s.t.Fatalf("the server sent %q, after:\n%s", m.Method, recent())
	}
	if m.ID.IsZero() {
		s.bare[m.Error.Code]--
		if s.bare[m.Error.Code] < 0 {
			s.t.Fatalf("an answer too many: %v, after:\n%s", m.Error, recent())
		}
		return
	}
	due, ok := s.open[m.ID]
	if !ok {
		s.t.Fatalf("an answer too many, to id %v: %v, after:\n%s", m.ID, m.Error, recent())
	}
	delete(s.open, m.ID)
	var code int64
	if m.Error != nil {
		code = m.Error.Code
	}
	if code != due.code {
		s.t.Fatalf("code %d, want %d (%v), for %.500q", code, due.code, m.Error, due.line)
	}
	if due.check != nil {
		if err := due.check(m); err != nil {
			s.t.Fatalf("%v, for %.500q", err, due.line)
		}
	}
}

// Proves: SEC-DOS-1, MSG-1, MSG-2, MSG-4, SEC-RES-1, and that G3, G16 and M0 of
// other libraries are not here: ten thousand lines that are wrong in every way
// end neither process nor session, each gets its one answer or none, and good
// calls in between are answered right. Rulings 8, 9 and 10.
func TestHostileLines(t *testing.T) {
	versions := newServer(t, server.Limits{}).Versions()
	for i, version := range versions {
		t.Run(version, func(t *testing.T) {
			mcptest.NoLeaks(t)
			h := newHostile(version, uint64(i+1))
			s := &hostileSession{
				rawClient: dialRaw(t, newServer(t, server.Limits{})), h: h,
				open: make(map[jsonrpc.ID]owed), bare: make(map[int64]int),
			}
			s.handshake(version)
			count := make(map[string]int)
			for n := range corpus {
				kind := kinds[h.IntN(len(kinds))]
				count[kind.name]++
				s.attack(kind.make(h))
				if n%8 == 7 {
					s.canary()
				}
			}
			lines, verdicts := h.giants()
			for i := range lines {
				s.attack(lines[i], verdicts[i])
				s.canary()
			}
			for _, m := range s.hangUp() {
				s.settle(m)
			}
			for id, due := range s.open {
				t.Errorf("id %v was never answered: %.500q", id, due.line)
			}
			for _, kind := range kinds {
				if count[kind.name] == 0 {
					t.Errorf("no line of the kind %q was sent", kind.name)
				}
			}
		})
	}
}

// FuzzSession sends any lines, then a good call, which must be answered.
func FuzzSession(f *testing.F) {
	for i, version := range []string{"2025-03-26", newest} {
		h := newHostile(version, uint64(i))
		for _, kind := range kinds {
			line, _ := kind.make(h)
			f.Add(version == newest, []byte(line))
		}
	}
	s := newServer(f, server.Limits{})
	f.Fuzz(func(t *testing.T, modern bool, lines []byte) {
		version := "2025-03-26"
		if modern {
			version = newest
		}
		c := dialRaw(t, s)
		c.handshake(version)
		c.send(lines)
		const name = "the canary 7c1e"
		if bytes.Contains(lines, []byte("7c1e")) {
			t.Skip("the id was guessed")
		}
		id := jsonrpc.StringID(name)
		c.send([]byte(`{"jsonrpc":"2.0","id":"` + name + `","method":"tools/call","params":{` + metaOf(version) +
			`"name":"echo","arguments":{"message":"alive"}}}`))
		for {
			m := c.next()
			if m.Kind != jsonrpc.Response || m.ID != id {
				continue
			}
			if got := text(m); got != "alive" {
				t.Errorf("the canary got %q", got)
			}
			break
		}
		if slices.ContainsFunc(c.hangUp(), func(m *jsonrpc.Incoming) bool { return m.ID == id }) {
			t.Error("the canary was answered twice")
		}
	})
}
