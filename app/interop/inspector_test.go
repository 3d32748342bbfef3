package interop_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/parley-mcp/parley/app/interop/script"
)

// The command line of the MCP Inspector with our server, in each mode of its
// negotiation. It connects anew for each method.
func TestInspector(t *testing.T) {
	for era, version := range map[string]string{"legacy": legacy, "auto": modern, "modern": modern} {
		t.Run("http "+era, func(t *testing.T) {
			t.Parallel()
			peersDir(t)
			e := serveOurs(t)
			inspect(t, era, []string{e.url, "--transport", "http"})
			e.seen.checkVersion(t, version)
		})
		t.Run("stdio "+era, func(t *testing.T) {
			t.Parallel()
			inspect(t, era, []string{program, "ours"})
		})
	}
}

// inspect has the inspector call each kind of method.
func inspect(t *testing.T, era string, target []string) {
	t.Helper()
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	// --strict looks at the schemas too, and fails for those that models refuse.
	inspector(t, era, target, &list, "--method", "tools/list", "--strict")
	if len(list.Tools) != len(script.Want(modern).Tools) {
		t.Errorf("tools: %+v", list)
	}

	var sum struct {
		StructuredContent struct {
			Sum float64 `json:"sum"`
		} `json:"structuredContent"`
	}
	inspector(t, era, target, &sum, "--method", "tools/call", "--tool-name", script.Add, "--tool-args-json", `{"a":2,"b":3}`)
	if sum.StructuredContent.Sum != 5 {
		t.Errorf("add: %+v", sum)
	}

	var read struct {
		Contents []struct {
			Text string `json:"text"`
		} `json:"contents"`
	}
	inspector(t, era, target, &read, "--method", "resources/read", "--uri", script.Item)
	if len(read.Contents) != 1 || read.Contents[0].Text != script.ItemText+"7" {
		t.Errorf("read: %+v", read)
	}

	var got struct {
		Messages []struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"messages"`
	}
	inspector(t, era, target, &got, "--method", "prompts/get", "--prompt-name", script.Review, "--prompt-args", script.Language+"=go")
	if len(got.Messages) != 1 || got.Messages[0].Content.Text != script.ReviewText("go") {
		t.Errorf("prompt: %+v", got)
	}
}

// inspector runs one method and decodes its result.
func inspector(t *testing.T, era string, target []string, result any, args ...string) {
	t.Helper()
	command := append([]string{inspectorJS, "--cli"}, target...)
	command = append(command, "--protocol-era", era, "--format", "json", "--quiet")
	cmd := node(t, append(command, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("inspector %v: %v\n%s%s", args, err, out, stderr.Bytes())
	}
	var whole struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(out, &whole); err == nil && len(whole.Result) > 0 {
		out = whole.Result
	}
	if err := json.Unmarshal(out, result); err != nil {
		t.Fatalf("inspector %v printed %q: %v", args, out, err)
	}
}
