package inspect

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// An AppInfo says which page a tool has, and under which policy that may be shown.
type AppInfo struct {
	HasApp           bool         `json:"hasApp"`
	ToolName         string       `json:"toolName"`
	ResourceURI      string       `json:"resourceUri,omitzero"`
	Visibility       mcp.RawValue `json:"visibility,omitzero"`
	CSP              mcp.RawValue `json:"csp,omitzero"`
	Permissions      mcp.RawValue `json:"permissions,omitzero"`
	Domain           mcp.RawValue `json:"domain,omitzero"`
	PrefersBorder    mcp.RawValue `json:"prefersBorder,omitzero"`
	ResourceMIMEType string       `json:"resourceMimeType,omitzero"`
	// ResourceError is why the page could not be read.
	ResourceError string `json:"resourceError,omitzero"`
}

// onlyAppInfo is the outcome of a question for the page of one tool.
func onlyAppInfo(info *AppInfo) (*Outcome, error) {
	o, err := encoded(info)
	if err == nil && !info.HasApp {
		o.Failure = &Error{Exit: ExitNoApp, Code: "no_app", Message: fmt.Sprintf("tool %q has no app (_meta.ui.resourceUri)", info.ToolName)}
	}
	if o != nil {
		o.AppInfo = info
	}
	return o, err
}

// appInfo reads the page of a tool, which is not called. What is wrong with it is in the
// answer.
func (s *Session) appInfo(ctx context.Context, tool mcp.RawValue) *AppInfo {
	info := &AppInfo{ToolName: member(tool, "name")}
	o, _ := strictjson.ParseObject(tool)
	ui := uiOf(o)
	meta, _ := o.Object("_meta")
	place, ok := ui.Member("resourceUri")
	if !ok {
		place, ok = meta.Member("ui/resourceUri") // of the first drafts
	}
	if !ok {
		return info
	}
	if strictjson.Unmarshal(place, &info.ResourceURI) != nil || !strings.HasPrefix(info.ResourceURI, "ui://") {
		info.ResourceURI = ""
		info.ResourceError = fmt.Sprintf("its _meta names %s, which is not a ui:// URI", place)
		return info
	}
	info.HasApp = true
	info.Visibility = truthy(ui, "visibility")
	raw, err := s.ask(ctx, mcp.MethodResourcesRead, map[string]string{"uri": info.ResourceURI}, nil)
	if err != nil {
		info.ResourceError = err.Error()
		return info
	}
	answer, err := strictjson.ParseObject(raw)
	if err != nil {
		info.ResourceError = err.Error()
		return info
	}
	page := pageOf(answer, info.ResourceURI)
	of := uiOf(page)
	if of.Raw() == nil {
		of = uiOf(answer)
	}
	info.CSP, info.Permissions, info.Domain = truthy(of, "csp"), truthy(of, "permissions"), truthy(of, "domain")
	info.PrefersBorder, _ = of.Member("prefersBorder")
	info.ResourceMIMEType = member(page.Raw(), "mimeType")
	return info
}

// uiOf is what the metadata of something says of its page.
func uiOf(o strictjson.Object) strictjson.Object {
	meta, _ := o.Object("_meta")
	ui, _ := meta.Object("ui")
	return ui
}

// truthy is a member unless it is null, false, 0 or "".
func truthy(o strictjson.Object, name string) mcp.RawValue {
	raw, _ := o.Member(name)
	switch string(raw) {
	case "null", "false", "0", `""`:
		return nil
	}
	return raw
}

// pageOf finds the contents that have a URI, or the only ones.
func pageOf(answer strictjson.Object, uri string) strictjson.Object {
	raw, _ := answer.Member("contents")
	var list []mcp.RawValue
	if strictjson.Unmarshal(raw, &list) != nil {
		return strictjson.Object{}
	}
	same := func(s string) string { return strings.TrimSuffix(strings.ToLower(s), "/") }
	var found mcp.RawValue
	for _, c := range list {
		own := member(c, "uri")
		if own == uri {
			found = c
			break
		}
		if found == nil && same(own) == same(uri) {
			found = c
		}
	}
	if found == nil && len(list) == 1 {
		found = list[0]
	}
	o, _ := strictjson.ParseObject(found)
	return o
}
