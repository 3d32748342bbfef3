package tester

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"github.com/parley-mcp/parley/app/internal/tester/inspect"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// printLine writes one of several values, on a line of its own.
func (in *inspector) printLine(value mcp.RawValue) error {
	raw, err := jsonrpc.JSON(value).AppendJSON(nil) // without line breaks
	if err != nil {
		return inspect.Internal(fmt.Errorf("writing JSON: %w", err))
	}
	return internally(in.PrintJSONLines(string(raw)))
}

// internally makes an error of ours of a failure to write.
func internally(err error) error {
	if err == nil {
		return nil
	}
	return inspect.Internal(err)
}

// An inspectEnvelope is what --format json writes.
type inspectEnvelope struct {
	Result  mcp.RawValue     `json:"result,omitzero"`
	AppInfo *inspect.AppInfo `json:"appInfo,omitzero"`
	Output  *writtenFile     `json:"output,omitzero"`

	Findings []inspect.ToolFindings `json:"schemaFindings,omitzero"`
}

// printOutcome writes what a method gave. A failure in it is returned after that.
func (in *inspector) printOutcome(flags *inspectFlags, method string, o *inspect.Outcome) error {
	if o.Result == nil {
		if o.Summary != "" && o.Failure == nil && !flags.quiet && !in.JSON {
			in.Note("%s", host.EscapeLine(o.Summary))
		}
		return failureOf(o)
	}
	envelope := &inspectEnvelope{Result: o.Result, AppInfo: o.AppInfo, Findings: o.Findings}
	if flags.appInfo {
		envelope = &inspectEnvelope{AppInfo: o.AppInfo}
	}
	if flags.output != "" {
		written, err := writeResult(flags, method, o.Result)
		if err != nil {
			return err
		}
		envelope.Result, envelope.Output = nil, written
	}
	var err error
	switch {
	case flags.format == "json":
		var raw []byte
		if raw, err = jsonrpc.JSON(envelope).AppendJSON(nil); err == nil {
			err = in.PrintJSONLines(string(raw))
		}
	case flags.output != "":
		if !flags.quiet {
			in.Note("parley: wrote %d bytes to %s", envelope.Output.Bytes, host.EscapeLine(flags.output))
		}
	case in.JSON || flags.appInfo:
		err = in.printLine(o.Result)
	default:
		err = in.Println(host.Indent(o.Result))
	}
	if err != nil {
		return internally(err)
	}
	if o.FindingsText != "" && flags.format != "json" && !in.JSON {
		in.Note("%s", host.Escape(o.FindingsText))
	}
	return failureOf(o)
}

// failureOf is the failure that an outcome says, as an error.
func failureOf(o *inspect.Outcome) error {
	if o.Failure == nil {
		return nil
	}
	return o.Failure
}

// A writtenFile is a file that a result was written into.
type writtenFile struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Bytes  int    `json:"bytes"`
}

// writeResult writes a result into the file of --output.
func writeResult(flags *inspectFlags, method string, result mcp.RawValue) (*writtenFile, error) {
	data, format := []byte(host.Indent(result)+"\n"), "json"
	if flags.outputFormat == "raw" {
		format = "raw"
		var err error
		if data, err = rawOf(method, result); err != nil {
			return nil, &inspect.Error{Exit: inspect.ExitUsage, Code: "output_not_raw", Message: err.Error()}
		}
	}
	if err := os.WriteFile(flags.output, data, 0o600); err != nil {
		return nil, &inspect.Error{Exit: inspect.ExitUsage, Code: "output_write_failed", Message: "--output: " + err.Error()}
	}
	return &writtenFile{flags.output, format, len(data)}, nil
}

// A rawBlock is content as far as it has text or bytes.
type rawBlock struct {
	Text     *string `json:"text"`
	Data     *string `json:"data"`
	Blob     *string `json:"blob"`
	Resource *struct {
		Text *string `json:"text"`
		Blob *string `json:"blob"`
	} `json:"resource"`
}

// rawOf is the text in a result, or the bytes of the only block that has some.
func rawOf(method string, result mcp.RawValue) ([]byte, error) {
	o, err := strictjson.ParseObject(result)
	if err != nil {
		return nil, fmt.Errorf("the result is not an object: %w", err)
	}
	member := "content"
	if method == mcp.MethodResourcesRead {
		member = "contents"
	}
	raw, _ := o.Member(member)
	var blocks []mcp.RawValue
	if err := strictjson.Unmarshal(raw, &blocks); err != nil {
		return nil, fmt.Errorf("%s is not an array: %w", member, err)
	}
	var texts, binaries []string
	for _, raw := range blocks {
		var b rawBlock
		if strictjson.Unmarshal(raw, &b) != nil {
			continue
		}
		if b.Resource != nil {
			b.Text, b.Blob = b.Resource.Text, b.Resource.Blob
		}
		for _, binary := range []*string{b.Data, b.Blob} {
			if b.Text == nil && binary != nil {
				binaries = append(binaries, *binary)
			}
		}
		if b.Text != nil {
			texts = append(texts, *b.Text)
		}
	}
	switch {
	case len(texts) > 0:
		return []byte(strings.Join(texts, "\n")), nil
	case len(binaries) != 1:
		return nil, fmt.Errorf("the result has no text and %d binary blocks, so it has no raw form; use --output-format json", len(binaries))
	}
	data, err := base64.StdEncoding.DecodeString(binaries[0])
	if err != nil {
		return nil, fmt.Errorf("the result's bytes are not valid base64: %w", err)
	}
	return data, nil
}
