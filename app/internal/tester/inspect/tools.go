package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

func listTools(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
	tools, err := s.list(ctx, mcp.MethodToolsList, "tools")
	if err != nil && !notOffered(err) {
		return nil, err
	}
	if !a.AppInfo {
		o, err := encoded(map[string][]mcp.RawValue{"tools": tools})
		if err == nil && a.Strict {
			o.lint(tools)
		}
		return o, err
	}
	for _, tool := range tools {
		raw, err := strictjson.Marshal(s.appInfo(ctx, tool))
		if err == nil {
			err = a.Emit(raw)
		}
		if err != nil {
			return nil, err
		}
	}
	return &Outcome{}, nil
}

// lint adds what is wrong with the schemas of tools.
func (o *Outcome) lint(tools []mcp.RawValue) {
	found, failed, warnings := strict(tools)
	if len(found) == 0 {
		return
	}
	o.Findings, o.FindingsText = found, strictReport(found, failed, warnings)
	if failed > 0 {
		o.Failure = &Error{Exit: ExitSchema, Code: "schema_unportable", Message: fmt.Sprintf("the schemas of the tools have %d errors (--strict)", failed)}
	}
}

// callTool calls a tool that the server lists.
func callTool(ctx context.Context, s *Session, a *Args) (*Outcome, error) {
	if a.Tool == "" {
		return nil, missing(mcp.MethodToolsCall, flagTool)
	}
	tool, err := s.tool(ctx, a.Tool)
	if err != nil {
		return nil, err
	}
	if a.AppInfo {
		return onlyAppInfo(s.appInfo(ctx, tool))
	}
	var info *AppInfo
	if a.WithAppInfo {
		if info = s.appInfo(ctx, tool); !info.HasApp {
			info = nil
		}
	}
	args, err := a.argumentsOf(ctx, tool)
	if err != nil {
		return nil, err
	}
	params := map[string]mcp.RawValue{"name": quoted(a.Tool), "arguments": args}
	options := &client.CallOptions{Meta: a.ToolMeta}
	if a.AsTask {
		options.ResultTypes = []string{tasks.ResultTask}
		if client.CoreTasks.Has(s.Version()) {
			params[memberTask] = mcp.RawValue("{}")
		}
	}
	raw, err := s.ask(ctx, mcp.MethodToolsCall, params, options)
	if err != nil {
		return nil, err
	}
	o := &Outcome{Result: raw, AppInfo: info}
	if answer, err := strictjson.ParseObject(raw); err == nil {
		if failed, _ := answer.Member("isError"); string(failed) == "true" {
			o.Failure = &Error{Exit: ExitTool, Code: "tool_is_error", Message: fmt.Sprintf("tool %q failed: its result has isError", a.Tool)}
		}
	}
	return o, nil
}

// argumentsOf are the arguments of a call of a tool from the server's list.
func (a *Args) argumentsOf(ctx context.Context, tool mcp.RawValue) (mcp.RawValue, error) {
	definition, _ := strictjson.ParseObject(tool) // the list was read as objects
	schema, _ := definition.Member("inputSchema")
	return a.arguments(ctx, schema)
}

// tool finds a tool in the server's list, as it came.
func (s *Session) tool(ctx context.Context, name string) (mcp.RawValue, error) {
	list, err := s.list(ctx, mcp.MethodToolsList, "tools")
	if err != nil && !notOffered(err) {
		return nil, err
	}
	names := make([]string, 0, len(list))
	for _, tool := range list {
		own := member(tool, "name")
		if own == name {
			return tool, s.learn(ctx, tool)
		}
		names = append(names, own)
	}
	return nil, &Error{
		Exit: ExitTool, Code: codeToolNotFound,
		Message: fmt.Sprintf("the server lists no tool %q%s", name, similar(names, name)),
	}
}

// learn has the client know a tool whose arguments are repeated in headers.
func (s *Session) learn(ctx context.Context, tool mcp.RawValue) error {
	if !s.client.Modern() || !bytes.Contains(tool, []byte("x-mcp-header")) {
		return nil
	}
	_, err := s.client.Tool(ctx, member(tool, "name"))
	if errors.Is(err, client.ErrNoTool) || errors.Is(err, client.ErrMalformed) {
		return nil // the server says what it thinks of the call
	}
	return err
}
