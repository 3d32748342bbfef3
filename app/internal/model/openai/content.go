package openai

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A part is one of the content of a message of the user.
type part struct {
	Type       string      `json:"type"`
	Text       string      `json:"text,omitempty"`
	ImageURL   *imageURL   `json:"image_url,omitempty"`
	InputAudio *inputAudio `json:"input_audio,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type inputAudio struct {
	Data   []byte `json:"data"` // in JSON it is base64
	Format string `json:"format"`
}

const partText = "text"

func textPart(text string) part { return part{Type: partText, Text: text} }

// plain is content that is nothing but text as one string, which every server takes.
func plain(parts []part) any {
	texts := make([]string, len(parts))
	for i, p := range parts {
		if p.Type != partText {
			return parts
		}
		texts[i] = p.Text
	}
	return strings.Join(texts, "\n\n")
}

// part is a block of content as the model takes it: else a text that says what was left out.
// It is false for what is empty.
func (m *Model) part(content mcp.Content) (part, bool) {
	var why string
	switch c := content.(type) {
	case *mcp.ImageContent:
		var p part
		if p, why = m.image(c); why == "" {
			return p, true
		}
	case *mcp.AudioContent:
		var p part
		if p, why = m.audio(c); why == "" {
			return p, true
		}
	}
	text := host.ContentText(content)
	if strings.TrimSpace(text) == "" {
		return part{}, false
	}
	if why != "" {
		text += " [host: it was left out: " + why + "]"
	}
	return textPart(text), true
}

// image is an image as it is sent, or why it is not.
func (m *Model) image(c *mcp.ImageContent) (p part, why string) {
	kind := http.DetectContentType(c.Data) // what it is, not what it is said to be
	switch {
	case m.info.MaxImage <= 0:
		return p, "the model takes no images"
	case len(c.Data) > m.info.MaxImage:
		return p, fmt.Sprintf("the model takes images of at most %d bytes", m.info.MaxImage)
	case kind == "image/png", kind == "image/jpeg", kind == "image/webp", kind == "image/gif" && m.server.gif:
		data := "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(c.Data)
		return part{Type: "image_url", ImageURL: &imageURL{data}}, ""
	case m.server.gif:
		return p, "it is no PNG, JPEG, WebP or GIF"
	}
	return p, "it is no PNG, JPEG or WebP"
}

// audioFormats are the words for the types of sound that there are words for.
var audioFormats = map[string]string{
	"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav",
	"audio/mpeg": "mp3", "audio/mp3": "mp3",
}

// audio is a sound as it is sent, or why it is not.
func (m *Model) audio(c *mcp.AudioContent) (p part, why string) {
	kind, _, _ := mime.ParseMediaType(c.MIMEType)
	format := audioFormats[kind]
	switch {
	case m.maxAudio <= 0:
		return p, "the model takes no sound"
	case len(c.Data) > m.maxAudio:
		return p, fmt.Sprintf("the model takes sounds of at most %d bytes", m.maxAudio)
	case format == "" || len(c.Data) == 0:
		return p, "it is no WAV or MP3"
	}
	return part{Type: "input_audio", InputAudio: &inputAudio{c.Data, format}}, ""
}
