// Command openapi makes a tool of each operation of an OpenAPI document, while
// it runs. See docs/guide/tools.md.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A document is what is needed of OpenAPI here: references and security are left
// out.
type document struct {
	Info  struct{ Title, Version string }
	Paths map[string]map[string]operation // by path and method
}

type operation struct {
	OperationID string `json:"operationId"`
	Summary     string
	Parameters  []struct {
		Name, In string
		Required bool
		Schema   json.RawMessage
	}
	RequestBody *struct {
		Content map[string]struct{ Schema json.RawMessage }
	} `json:"requestBody"`
}

// schema puts parameters, and the body as the member body, into one object.
func (op *operation) schema() ([]byte, error) {
	properties, required := make(map[string]json.RawMessage), []string{}
	for _, p := range op.Parameters {
		properties[p.Name] = p.Schema
		if p.Required {
			required = append(required, p.Name)
		}
	}
	if op.RequestBody != nil {
		properties["body"] = op.RequestBody.Content["application/json"].Schema
		required = append(required, "body")
	}
	return json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	})
}

// tool makes a tool of an operation. The schema is foreign,
// so an error is an error and not a panic.
func (op *operation) tool(base, method, path string) (*server.ToolFeature, error) {
	schema, err := op.schema()
	if err != nil {
		return nil, err
	}
	readOnly := method == http.MethodGet
	def := mcp.Tool{
		Name:        server.LegalName(cmp.Or(op.OperationID, method+" "+path)),
		Description: op.Summary,
		InputSchema: schema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: &readOnly},
	}
	return server.NewRawTool(def, func(ctx context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
		var args map[string]json.RawMessage
		if err := json.Unmarshal(arguments, &args); err != nil {
			return nil, err
		}
		return op.call(ctx, base, method, path, args)
	})
}

// call sends what the schema has checked to the API.
func (op *operation) call(ctx context.Context, base, method, path string, args map[string]json.RawMessage) (*mcp.CallToolResult, error) {
	query := make(url.Values)
	for _, p := range op.Parameters {
		raw, ok := args[p.Name]
		if !ok {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw) // a number, or true and false
		}
		switch p.In {
		case "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(text))
		case "query":
			query.Set(p.Name, text)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, base+path+"?"+query.Encode(), strings.NewReader(string(args["body"])))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return nil, mcp.Errorf("the API answered %s: %s", res.Status, body)
	}
	return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(string(body))}}, nil
}

// newServer makes a server of a document. Operations that cannot be served are
// left out with a line in the log.
func newServer(raw []byte, base string) (*server.Server, error) {
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	s := server.New(doc.Info.Title, doc.Info.Version, nil)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			tool, err := op.tool(base, strings.ToUpper(method), path)
			if err == nil {
				err = s.TryAdd(tool)
			}
			if err != nil {
				log.Printf("%s %s is left out: %v", method, path, err)
			}
		}
	}
	return s, nil
}

func main() {
	file := flag.String("document", "petstore.json", "OpenAPI document to read")
	base := flag.String("base", "http://127.0.0.1:8081", "URL that the paths are below")
	flag.Parse()
	raw, err := os.ReadFile(*file)
	if err != nil {
		log.Fatal(err)
	}
	s, err := newServer(raw, *base)
	if err != nil {
		log.Fatal(err)
	}
	if err := stdio.Serve(context.Background(), s); err != nil {
		log.Fatal(err)
	}
}
