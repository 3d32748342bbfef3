package main

import (
	"encoding/base64"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// results are messages with the result of a call, in the JSON of each model
// provider. The id is the one that the model gave the call, the name that by
// which it knows the tool.
var results = map[string]func(id, name string, r *mcp.CallToolResult) any{
	"anthropic": anthropicResult, "openai": openAIResult, "gemini": geminiResult,
}

// An object is an object of JSON.
type object = map[string]any

// maxText is how many bytes of a text go to the model: servers write it, and
// each byte costs.
const maxText = 64 << 10

// text is all that is not an image, in words: a model cannot be given audio or
// bytes that it does not take.
func text(r *mcp.CallToolResult) string {
	var parts []string
	for _, c := range r.Content {
		if _, ok := c.(*mcp.ImageContent); !ok {
			parts = append(parts, host.ContentText(c))
		}
	}
	all := strings.Join(parts, "\n")
	if len(r.Content) == 0 {
		all = string(r.StructuredContent)
	}
	if len(all) > maxText {
		all = strings.ToValidUTF8(all[:maxText], "") + "… (cut off)"
	}
	return all
}

// images are those of a result that providers take.
func images(r *mcp.CallToolResult) []*mcp.ImageContent {
	var list []*mcp.ImageContent
	for _, c := range r.Content {
		image, ok := c.(*mcp.ImageContent)
		if !ok {
			continue
		}
		switch image.MIMEType {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
			list = append(list, image)
		}
	}
	return list
}

// anthropicResult is a message of the user with a block "tool_result", which
// holds text and images.
func anthropicResult(id, _ string, r *mcp.CallToolResult) any {
	content := []object{{"type": "text", "text": text(r)}}
	for _, image := range images(r) {
		content = append(content, object{"type": "image", "source": object{
			"type": "base64", "media_type": image.MIMEType, "data": base64.StdEncoding.EncodeToString(image.Data),
		}})
	}
	return []object{{"role": "user", "content": []object{
		{"type": "tool_result", "tool_use_id": id, "content": content, "is_error": r.IsError},
	}}}
}

// openAIResult is a message of the tool, which holds text alone, and for images
// one of the user after it. If the model made several calls, the messages of the
// tools come first, all of them.
func openAIResult(id, name string, r *mcp.CallToolResult) any {
	messages := []object{{"role": "tool", "tool_call_id": id, "content": text(r)}}
	shown := []object{{"type": "text", "text": "Images of the tool " + name + ":"}}
	for _, image := range images(r) {
		url := "data:" + image.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
		shown = append(shown, object{"type": "image_url", "image_url": object{"url": url}})
	}
	if len(shown) > 1 {
		messages = append(messages, object{"role": "user", "content": shown})
	}
	return messages
}

// geminiResult is a content of the user: the response of the function, and the
// images as inline data.
func geminiResult(_, name string, r *mcp.CallToolResult) any {
	key := "output"
	if r.IsError {
		key = "error"
	}
	parts := []object{{"functionResponse": object{"name": name, "response": object{key: text(r)}}}}
	for _, image := range images(r) {
		parts = append(parts, object{"inlineData": object{"mimeType": image.MIMEType, "data": base64.StdEncoding.EncodeToString(image.Data)}})
	}
	return []object{{"role": "user", "parts": parts}}
}
