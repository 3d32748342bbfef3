package mcptest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// SpecVar is the environment variable that names the directory of the
// specification's schemas, as [NewOracle] wants it.
const SpecVar = "PARLEY_SPEC_DIR"

// An Oracle knows the schemas of the specification's revisions and says
// whether messages fit them. It may be used by many goroutines at once.
type Oracle struct {
	revisions map[string]*published
}

// NewOracle reads the schemas of a directory that holds REVISION/schema.json
// for each revision. It is an error if there is none.
func NewOracle(dir string) (*Oracle, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "schema.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for schemas: %w", err)
	}
	o := &Oracle{revisions: make(map[string]*published)}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a schema: %w", err)
		}
		p, err := newPublished(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if p != nil {
			o.revisions[filepath.Base(filepath.Dir(file))] = p
		}
	}
	if len(o.revisions) == 0 {
		return nil, fmt.Errorf("no REVISION/schema.json in %s: %w", dir, fs.ErrNotExist)
	}
	return o, nil
}

// oracles remembers the oracle of each directory, as reading one takes time.
var oracles sync.Map // of string to func() (*Oracle, error)

// specified returns the oracle of the environment, or nil if it names none.
func specified() (*Oracle, error) {
	dir := os.Getenv(SpecVar)
	if dir == "" {
		return nil, nil
	}
	once, _ := oracles.LoadOrStore(dir, sync.OnceValues(func() (*Oracle, error) { return NewOracle(dir) }))
	return once.(func() (*Oracle, error))()
}

// Versions are the revisions that the oracle knows, oldest first.
func (o *Oracle) Versions() []string {
	var list []string
	for v := range o.revisions {
		list = append(list, v)
	}
	slices.Sort(list) // they are dates
	return list
}

// Check says whether one message that from sent fits the schema of a revision:
// a request or notification the type of its method, which that side must be
// allowed to send; a result the type that belongs to the method of the request
// it answers, which is answers; an error the type of errors. For requests,
// notifications and errors answers may be empty.
//
// Errors whose id could not be read are exempt from the older schemas, which
// demand an id that there is none of (JSON-RPC 2.0, section 5: it is null).
func (o *Oracle) Check(version string, from mcp.Side, answers string, raw mcp.RawValue) error {
	p := o.revisions[version]
	if p == nil {
		return fmt.Errorf("no schema of revision %q", version)
	}
	m, err := jsonrpc.Parse(slices.Clone(raw), jsonrpc.Limits{Depth: maxTree})
	if err != nil {
		return fmt.Errorf("not a message: %w", err)
	}
	switch {
	case m.Kind == jsonrpc.Request:
		err = p.checkSent(from, m.Method, "JSONRPCRequest", raw)
	case m.Kind == jsonrpc.Notification:
		err = p.checkSent(from, m.Method, "JSONRPCNotification", raw)
	case m.Error != nil:
		err = p.checkError(m, raw)
	default:
		err = p.checkResult(from, answers, m, raw)
	}
	if err != nil {
		return fmt.Errorf("against the schema of %s: %w", version, err)
	}
	return nil
}

// published is the schema of one revision.
type published struct {
	text  string
	defs  *tree
	where string // "definitions" or "$defs"
	// sent are the names of the types of requests and notifications, by
	// sender and method.
	sent map[mcp.Side]map[string]string

	mu       sync.Mutex
	compiled map[string]*schema.Compiled
}

// newPublished reads a schema; nil if it is of something else than the
// protocol itself.
func newPublished(text []byte) (*published, error) {
	root, err := parseTree(text)
	if err != nil {
		return nil, err
	}
	p := &published{text: string(text), where: "$defs", compiled: make(map[string]*schema.Compiled)}
	if p.defs = root.member(p.where); p.defs == nil {
		p.where = "definitions"
		p.defs = root.member(p.where)
	}
	if p.defs.member("ClientRequest") == nil || p.defs.member("ServerNotification") == nil {
		return nil, nil
	}
	p.sent = map[mcp.Side]map[string]string{
		mcp.FromClient: p.union("ClientRequest", "ClientNotification"),
		mcp.FromServer: p.union("ServerRequest", "ServerNotification"),
	}
	return p, nil
}

// union lists the types of unions by the methods that they have.
func (p *published) union(names ...string) map[string]string {
	types := make(map[string]string)
	for _, name := range names {
		def := p.defs.member(name)
		if def == nil {
			continue
		}
		p.addType(types, name) // a union of one is not spelled as a union
		for _, word := range []string{"anyOf", "oneOf"} {
			alternatives := def.member(word)
			if alternatives == nil {
				continue
			}
			for _, a := range alternatives.items {
				p.addReference(types, a)
			}
		}
		p.addReference(types, def)
	}
	return types
}

func (p *published) addReference(types map[string]string, t *tree) {
	if ref := t.member("$ref"); ref != nil {
		p.addType(types, ref.text[strings.LastIndexByte(ref.text, '/')+1:])
	}
}

// addType adds a type if it says which method it is of.
func (p *published) addType(types map[string]string, name string) {
	if method := p.defs.member(name).member("properties").member("method").member("const"); method != nil {
		types[method.text] = name
	}
}

// check checks a value against a type.
func (p *published) check(name string, raw mcp.RawValue) error {
	c, err := p.compile(name)
	if err != nil {
		return err
	}
	if err := c.Check(raw); err != nil {
		return fmt.Errorf("type %s: %w", name, err)
	}
	return nil
}

// compile compiles the schema with one of its types as the root.
func (p *published) compile(name string) (*schema.Compiled, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.compiled[name]; c != nil {
		return c, nil
	}
	body := strings.TrimPrefix(strings.TrimSpace(p.text), "{")
	text := fmt.Sprintf(`{"allOf":[{"$ref":"#/%s/%s"}],%s`, p.where, name, body)
	c, err := schema.Compile(mcp.RawValue(text), &schema.Limits{
		MaxSchemaNodes: 1_000_000, MaxSchemaDepth: maxTree, MaxEvaluations: 100_000_000,
		AssertFormats: true, IgnoreHeaders: true,
	})
	if err != nil {
		return nil, fmt.Errorf("compiling type %s: %w", name, err)
	}
	p.compiled[name] = c
	return c, nil
}

// first returns the first of the names that is a type, or "".
func (p *published) first(names ...string) string {
	for _, name := range names {
		if p.defs.member(name) != nil {
			return name
		}
	}
	return ""
}

func (p *published) checkSent(from mcp.Side, method, envelope string, raw mcp.RawValue) error {
	name := p.sent[from][method]
	if name == "" {
		return fmt.Errorf("the %s does not send %q", side(from), method)
	}
	return errors.Join(p.check(envelope, raw), p.check(name, raw))
}

func (p *published) checkError(m *jsonrpc.Incoming, raw mcp.RawValue) error {
	if m.ID.IsZero() {
		var err error
		if raw, err = (&jsonrpc.Outgoing{ID: jsonrpc.IntID(0), Error: m.Error}).AppendJSON(nil); err != nil {
			return fmt.Errorf("writing an error with an id: %w", err)
		}
	}
	return p.check(p.first("JSONRPCErrorResponse", "JSONRPCError"), raw)
}

// checkResult checks the answer to a request of the other side.
func (p *published) checkResult(from mcp.Side, method string, m *jsonrpc.Incoming, raw mcp.RawValue) error {
	name := p.sent[(mcp.FromClient|mcp.FromServer)&^from][method]
	if name == "" {
		return fmt.Errorf("a result for %q, which the %s does not send", method, side((mcp.FromClient|mcp.FromServer)&^from))
	}
	stem := strings.TrimSuffix(name, "Request")
	result := p.first(stem+"Result", "EmptyResult")
	if kind, _ := m.Result.Member("resultType"); string(kind) == `"`+mcp.ResultInputRequired+`"` {
		// The type of the response tells whether the method may ask.
		result = p.first("InputRequiredResult", result)
	}
	err := errors.Join(
		p.check(p.first("JSONRPCResultResponse", "JSONRPCResponse"), raw),
		p.check(result, m.Result.Raw()),
	)
	if whole := p.first(stem + "ResultResponse"); whole != "" {
		err = errors.Join(err, p.check(whole, raw))
	}
	return err
}

func side(s mcp.Side) string {
	if s == mcp.FromClient {
		return "client"
	}
	return "server"
}
