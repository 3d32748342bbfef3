package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/skills"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// Names that no server has.
const (
	noMethod = "parley-doctor/no-such-method"
	noName   = "parley-doctor-no-such-name"
	noURI    = "parley-doctor://no/such/resource"
)

// identity examines what the server says about itself.
func (x *subject) identity() {
	switch s := x.c.Server(); {
	case s == nil:
		x.add("MCP-BASE-004", "$.server", "the server does not return serverInfo")
	case s.Name == "" || s.Version == "":
		x.add("MCP-BASE-004", "$.server", fmt.Sprintf("the name is %q and the version %q", s.Name, s.Version))
	}
	for id := range x.c.Capabilities().Extensions {
		if err := mcp.ValidExtension(id); err != nil {
			x.add("MCP-CAP-005", "$.capabilities.extensions", reasonOf(err))
		}
	}
	x.instructions(x.c.Instructions())
}

// probe sends what a server must answer with an error, or with nothing more than an answer.
func (x *subject) probe(ctx context.Context) {
	x.unknownMethod(ctx)
	if !x.c.Modern() {
		if in, err := x.raw(ctx, mcp.MethodPing, "", nil); err != nil {
			x.failed(ctx, mcp.MethodPing, "", err)
		} else if in.Error != nil {
			x.add("MCP-BASE-003", mcp.MethodPing, reasonOf(in.Error))
		}
		if x.c.Capabilities().Has(mcp.CapLogging) {
			x.served(ctx, mcp.CapLogging, mcp.MethodSetLevel, map[string]any{"level": "info"})
		}
	}
	if x.c.Capabilities().Has(mcp.CapCompletions) {
		x.served(ctx, mcp.CapCompletions, mcp.MethodComplete, map[string]any{
			"ref": map[string]any{"type": mcp.RefPrompt, "name": noName}, "argument": map[string]any{"name": "x", "value": ""},
		})
	}
	if x.c.Capabilities().Has(mcp.CapTools) {
		x.refused(ctx, "MCP-TOOL-011", mcp.MethodToolsCall, noName, map[string]any{"name": noName, "arguments": map[string]any{}})
		x.wrongArguments(ctx)
	}
	if x.c.Capabilities().Has(mcp.CapPrompts) {
		x.refused(ctx, "MCP-PROMPT-008", mcp.MethodPromptsGet, noName, map[string]any{"name": noName})
	}
	if x.c.Capabilities().Has(mcp.CapResources) {
		x.refused(ctx, "MCP-RES-010", mcp.MethodResourcesRead, noURI, map[string]any{"uri": noURI})
	}
}

func (x *subject) unknownMethod(ctx context.Context) {
	x.target.Watch.lastStatus()
	in, err := x.raw(ctx, noMethod, "", nil)
	switch {
	case err != nil:
		x.failed(ctx, noMethod, "", err)
		return
	case in.Error == nil:
		x.add("MCP-BASE-001", noMethod, "the server returned a result")
	case in.Error.Code != mcp.CodeMethodNotFound:
		x.add("MCP-BASE-002", noMethod, fmt.Sprintf("the server returned the error %d: %s", in.Error.Code, in.Error.Message))
	}
	want := http.StatusOK
	if x.c.Modern() {
		want = http.StatusNotFound
	}
	if status := x.target.Watch.lastStatus(); status != 0 && status != want && in.Error != nil && in.Error.Code == mcp.CodeMethodNotFound {
		x.add("MCP-HTTP-001", noMethod, fmt.Sprintf("the status is %d, but must be %d", status, want))
	}
}

// served asks for a method of a capability that is declared.
func (x *subject) served(ctx context.Context, capability, method string, params map[string]any) {
	in, err := x.raw(ctx, method, "", params)
	switch {
	case err != nil:
		x.failed(ctx, method, "", err)
	case in.Error != nil && in.Error.Code == mcp.CodeMethodNotFound:
		x.add("MCP-CAP-001", method, fmt.Sprintf("%q is declared, but %s returns: %v", capability, method, in.Error))
	}
}

// refused asks for something that does not exist.
func (x *subject) refused(ctx context.Context, id, method, target string, params map[string]any) {
	where := method + " of an unknown name"
	in, err := x.raw(ctx, method, target, params)
	if err != nil {
		x.failed(ctx, where, "", err)
		return
	}
	if in.Error != nil || failedTool(in) {
		return
	}
	x.add(id, where, fmt.Sprintf("the server returned a result for %q", target))
}

// failedTool reports whether an answer is a result of a tool that failed.
func failedTool(in *jsonrpc.Incoming) bool {
	value, ok := in.Result.Member("isError")
	return ok && string(value) == "true"
}

// wrongArguments calls one tool that only reads, according to its server, without the arguments
// that it requires. If that is taken, nothing was to be changed.
func (x *subject) wrongArguments(ctx context.Context) {
	for _, t := range x.offer.tools {
		if t.def == nil || t.def.Annotations == nil || !t.def.Annotations.ReadOnly() || t.compiled == nil {
			continue
		}
		wrong := map[string]any{}
		raw, err := json.Marshal(wrong)
		if err != nil || t.compiled.Check(raw) == nil {
			continue
		}
		in, err := x.raw(ctx, mcp.MethodToolsCall, t.name, map[string]any{"name": t.name, "arguments": wrong})
		if err != nil {
			x.failed(ctx, mcp.MethodToolsCall+" without required arguments", "", err)
		} else if in.Error == nil && !failedTool(in) && complete(in) {
			x.add("MCP-TOOL-012", t.path(), "a call without the arguments that the schema requires returned a result")
		}
		return
	}
}

// complete reports whether a result is a final one.
func complete(in *jsonrpc.Incoming) bool {
	value, ok := in.Result.Member("resultType")
	return !ok || string(value) == `"`+mcp.ResultComplete+`"`
}

// maxSkills is how many skills are loaded.
const maxSkills = 50

// skills examines the skills of a server that has some.
func (x *subject) skills(ctx context.Context) {
	n := 0
	for s, err := range skills.List(ctx, x.c) {
		if errors.As(err, new(*client.NoExtensionError)) {
			return
		}
		if err != nil {
			if refusal, ok := errors.AsType[*jsonrpc.Error](err); ok {
				err = &answerError{refusal}
			}
			x.failed(ctx, "the list of skills", "MCP-SKILL-001", err)
			return
		}
		if n++; n > maxSkills {
			return
		}
		if err := s.Check(); err != nil {
			x.add("MCP-SKILL-002", s.URI, reasonOf(err))
			continue
		}
		x.skill(ctx, s)
	}
}

// skill compares the files of a skill with its entry.
func (x *subject) skill(ctx context.Context, s *skills.Skill) {
	_, err := skills.Load(ctx, x.c, s)
	for i := 0; err == nil && i < len(s.Files); i++ {
		_, err = skills.Read(ctx, x.c, s, s.Files[i].URI)
	}
	if differs, ok := errors.AsType[*skills.VerifyError](err); ok {
		x.add("MCP-SKILL-003", differs.URI, reasonOf(differs))
	} else if err != nil && ctx.Err() == nil {
		x.add("MCP-RES-008", s.URI, reasonOf(err))
	}
}
