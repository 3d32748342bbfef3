package mcp

// Content is a block of content: [*TextContent], [*ImageContent],
// [*AudioContent], [*ResourceLink] or [*EmbeddedResource], and in sampling also
// [*ToolUseContent] and [*ToolResultContent]. The set is closed.
type Content interface {
	content()
}

// Contents is a list of content. A []Content can be assigned to it.
type Contents []Content

// TextContent is text.
type TextContent struct {
	// Type has no value to set; it writes and checks "text".
	Type typeText `json:"type"`
	// Text is the text.
	Text string `json:"text"`
	// Annotations say which audience it is for, and how important it is.
	Annotations *Annotations `json:"annotations,omitzero"`
	// Meta is metadata. Not before 2025-06-18.
	Meta Meta `json:"_meta,omitzero"`
}

// ImageContent is a picture.
type ImageContent struct {
	// Type has no value to set; it writes and checks "image".
	Type typeImage `json:"type"`
	// Data is the picture; in JSON it is base64.
	Data []byte `json:"data"`
	// MIMEType is its type, such as image/png.
	MIMEType string `json:"mimeType"`
	// Annotations say which audience it is for, and how important it is.
	Annotations *Annotations `json:"annotations,omitzero"`
	// Meta is metadata. Not before 2025-06-18.
	Meta Meta `json:"_meta,omitzero"`
}

// AudioContent is sound. 2024-11-05 does not know it: there it becomes an
// embedded resource.
type AudioContent struct {
	// Type has no value to set; it writes and checks "audio".
	Type typeAudio `json:"type"`
	// Data is the sound; in JSON it is base64.
	Data []byte `json:"data"`
	// MIMEType is its type, such as audio/wav.
	MIMEType string `json:"mimeType"`
	// Annotations say which audience it is for, and how important it is.
	Annotations *Annotations `json:"annotations,omitzero"`
	// Meta is metadata. Not before 2025-06-18.
	Meta Meta `json:"_meta,omitzero"`
}

// ResourceLink points at a resource that can be read from the server; it need
// not be in the server's list. Before 2025-06-18 it becomes text.
type ResourceLink struct {
	// Type has no value to set; it writes and checks "resource_link".
	Type typeResourceLink `json:"type"`
	Resource
}

// EmbeddedResource is the contents of a resource.
type EmbeddedResource struct {
	// Type has no value to set; it writes and checks "resource".
	Type typeResource `json:"type"`
	// Resource are the contents.
	Resource ResourceContents `json:"resource"`
	// Annotations say which audience it is for, and how important it is.
	Annotations *Annotations `json:"annotations,omitzero"`
	// Meta is metadata. Not before 2025-06-18.
	Meta Meta `json:"_meta,omitzero"`
}

// ToolUseContent is a model's wish to use a tool. In sampling only, not before
// 2025-11-25.
type ToolUseContent struct {
	// Type has no value to set; it writes and checks "tool_use".
	Type typeToolUse `json:"type"`
	// ID is what the result refers to.
	ID string `json:"id"`
	// Name is the tool.
	Name string `json:"name"`
	// Input are the arguments, a JSON object.
	Input RawValue `json:"input"`
	// Meta is metadata.
	Meta Meta `json:"_meta,omitzero"`
}

// ToolResultContent is the result of such a use. In sampling only, not before
// 2025-11-25.
type ToolResultContent struct {
	// Type has no value to set; it writes and checks "tool_result".
	Type typeToolResult `json:"type"`
	// ToolUseID is the ID of the ToolUseContent.
	ToolUseID string `json:"toolUseId"`
	// Content is what the tool gave: any content but tool use and results.
	Content Contents `json:"content"`
	// StructuredContent is the result as JSON; nil is absent.
	StructuredContent RawValue `json:"structuredContent,omitzero"`
	// IsError says that the tool failed.
	IsError bool `json:"isError,omitzero"`
	// Meta is metadata.
	Meta Meta `json:"_meta,omitzero"`
}

func (*TextContent) content()       {}
func (*ImageContent) content()      {}
func (*AudioContent) content()      {}
func (*ResourceLink) content()      {}
func (*EmbeddedResource) content()  {}
func (*ToolUseContent) content()    {}
func (*ToolResultContent) content() {}

// Text makes text content.
func Text(text string) *TextContent { return &TextContent{Text: text} }

// Image makes a picture of a MIME type such as image/png.
func Image(data []byte, mime string) *ImageContent {
	return &ImageContent{Data: data, MIMEType: mime}
}

// Audio makes sound of a MIME type such as audio/wav.
func Audio(data []byte, mime string) *AudioContent {
	return &AudioContent{Data: data, MIMEType: mime}
}

// Link makes a link to the resource uri.
func Link(uri, name string) *ResourceLink {
	return &ResourceLink{Resource: Resource{URI: uri, Name: name}}
}

// Embed makes content of the contents of a resource.
func Embed(contents ResourceContents) *EmbeddedResource {
	return &EmbeddedResource{Resource: contents}
}
