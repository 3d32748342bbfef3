package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// contentTools are tools that answer with each kind of content, or fail.
func contentTools() []server.Feature {
	return []server.Feature{
		server.Tool("test_simple_text", "Answers with text.", func(context.Context, mcp.None) (string, error) {
			return "This is a simple text response for testing.", nil
		}),
		server.Tool("test_image_content", "Answers with an image.", func(context.Context, mcp.None) (mcp.Content, error) {
			return mcp.Image(picture(), "image/png"), nil
		}),
		server.Tool("test_audio_content", "Answers with audio.", func(context.Context, mcp.None) (mcp.Content, error) {
			return mcp.Audio(silence(), "audio/wav"), nil
		}),
		server.Tool("test_embedded_resource", "Answers with a resource.", func(context.Context, mcp.None) (mcp.Content, error) {
			return mcp.Embed(mcp.ResourceContents{
				URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content.",
			}), nil
		}),
		server.Tool("test_multiple_content_types", "Answers with text, an image and a resource.", mixed),
		server.Tool("test_error_handling", "Always fails.", func(context.Context, mcp.None) (string, error) {
			return "", mcp.Errorf("this tool fails on purpose")
		}),
	}
}

func mixed(context.Context, mcp.None) ([]mcp.Content, error) {
	return []mcp.Content{
		mcp.Text("Several kinds of content:"),
		mcp.Image(picture(), "image/png"),
		mcp.Embed(mcp.ResourceContents{
			URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`,
		}),
	}, nil
}

// picture is a PNG file of one red pixel.
func picture() []byte {
	m := image.NewRGBA(image.Rect(0, 0, 1, 1))
	m.Set(0, 0, color.RGBA{R: 255, A: 255})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// silence is a WAV file of a hundredth of a second: 80 samples of 8 bits, all
// in the middle, at 8,000 a second.
func silence() []byte {
	const rate, samples = 8000, 80
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, 36+samples)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, 1) // PCM
	b = binary.LittleEndian.AppendUint16(b, 1) // one channel
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate) // bytes a second
	b = binary.LittleEndian.AppendUint16(b, 1)    // bytes a sample
	b = binary.LittleEndian.AppendUint16(b, 8)    // bits a sample
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, samples)
	return append(b, bytes.Repeat([]byte{128}, samples)...)
}
