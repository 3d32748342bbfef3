package everything

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type annotatedIn struct {
	MessageType  string `json:"messageType" desc:"Which kind of message." enum:"error,success,debug"`
	IncludeImage bool   `json:"includeImage" desc:"Whether a picture comes with it." default:"false"`
}

type linksIn struct {
	Count int `json:"count" desc:"How many links." min:"1" max:"10" default:"3"`
}

type referenceIn struct {
	ResourceType string `json:"resourceType" desc:"What the resource holds." enum:"Text,Blob" default:"Text"`
	ResourceID   int    `json:"resourceId" desc:"The number of the resource." min:"1" default:"1"`
}

// contentTools are tools that answer with each kind of content.
func contentTools() []server.Feature {
	return []server.Feature{
		server.Tool("get-annotated-message", "Gives a message that says how important it is, and for whom.", annotated).
			With(server.ToolOptions{Title: "Annotated message", Annotations: readOnly}),

		server.Tool("get-tiny-image", "Gives a very small picture.", func(context.Context, mcp.None) ([]mcp.Content, error) {
			return []mcp.Content{mcp.Text("A picture of 16 by 16 pixels:"), mcp.Image(picture(), "image/png")}, nil
		}).With(server.ToolOptions{Title: "Tiny image", Annotations: readOnly}),

		server.Tool("get-tiny-audio", "Gives a very short sound.", func(context.Context, mcp.None) ([]mcp.Content, error) {
			return []mcp.Content{mcp.Text("A tone of a tenth of a second:"), mcp.Audio(tone(), "audio/wav")}, nil
		}).With(server.ToolOptions{Title: "Tiny audio", Annotations: readOnly}),

		server.Tool("get-resource-links", "Gives links to resources of this server.", func(_ context.Context, in linksIn) ([]mcp.Content, error) {
			list := []mcp.Content{mcp.Text(fmt.Sprintf("Here are %d resource links to resources available in this server:", in.Count))}
			for i := 1; i <= in.Count; i++ {
				kind, what := "Blob", "binary blob resource"
				if i%2 == 0 {
					kind, what = "Text", "plaintext resource"
				}
				link := mcp.Link(dynamicURI(kind, i), fmt.Sprintf("%s Resource %d", kind, i))
				link.Description, link.MIMEType = fmt.Sprintf("Resource %d: %s", i, what), "text/plain"
				list = append(list, link)
			}
			return list, nil
		}).With(server.ToolOptions{Title: "Resource links", Annotations: readOnly}),

		server.Tool("get-resource-reference", "Gives a resource of this server with its contents.", func(_ context.Context, in referenceIn) ([]mcp.Content, error) {
			resource := dynamic(in.ResourceType, in.ResourceID)
			return []mcp.Content{
				mcp.Text(fmt.Sprintf("Returning resource reference for Resource %d:", in.ResourceID)),
				mcp.Embed(resource),
				mcp.Text("You can access this resource using the URI: " + resource.URI),
			}, nil
		}).With(server.ToolOptions{Title: "Resource with contents", Annotations: readOnly}),
	}
}

func annotated(_ context.Context, in annotatedIn) ([]mcp.Content, error) {
	message := func(text string, priority float64, audience ...mcp.Role) *mcp.TextContent {
		t := mcp.Text(text)
		t.Annotations = &mcp.Annotations{Audience: audience, Priority: new(priority)}
		return t
	}
	var list []mcp.Content
	switch in.MessageType {
	case "error":
		list = append(list, message("Error: Operation failed", 1, mcp.RoleUser, mcp.RoleAssistant))
	case "success":
		list = append(list, message("Operation completed successfully", 0.7, mcp.RoleUser))
	default:
		list = append(list, message("Debug: Cache hit ratio 0.95, latency 150ms", 0.3, mcp.RoleAssistant))
	}
	if in.IncludeImage {
		p := mcp.Image(picture(), "image/png")
		p.Annotations = &mcp.Annotations{Audience: []mcp.Role{mcp.RoleUser}, Priority: new(0.5)}
		list = append(list, p)
	}
	return list, nil
}

// picture draws a small picture, the same each time.
func picture() []byte {
	const size = 16
	m := image.NewRGBA(image.Rect(0, 0, size, size))
	for y := range size {
		for x := range size {
			m.Set(x, y, color.RGBA{R: uint8(x * 16), G: uint8(y * 16), B: 128, A: 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// tone makes a WAV file of a sine of 440 Hz: 8,000 samples of 8 bits a second.
func tone() []byte {
	const rate, samples = 8000, 800
	var b bytes.Buffer
	b.WriteString("RIFF")
	for _, part := range []any{
		uint32(36 + samples), []byte("WAVEfmt "), uint32(16),
		uint16(1), uint16(1), uint32(rate), uint32(rate), uint16(1), uint16(8), // PCM, one channel
		[]byte("data"), uint32(samples),
	} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err) // all of them have a fixed size
		}
	}
	for i := range samples {
		b.WriteByte(byte(128 + 100*math.Sin(2*math.Pi*440*float64(i)/rate)))
	}
	return b.Bytes()
}
