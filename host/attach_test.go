package host_test

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// picture is an image.
func picture(t *testing.T) *mcp.ImageContent {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	return mcp.Image(b.Bytes(), "image/png")
}

// What the person attaches stands before the text, for the model and in the log.
func TestAttached(t *testing.T) {
	m := &scripted{info: host.ModelInfo{MaxImage: 1 << 10}}
	h := newHost(t, &host.Options{}, nil)
	s := begin(t, h, m)
	if err := s.Send(t.Context(), host.Input{Text: "what is this?", Attached: mcp.Contents{mcp.Text("File a.txt:\nabc"), picture(t)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range m.requests()[0].Messages[0].Blocks {
		got = append(got, host.ContentText(b.Content))
	}
	if text := strings.Join(got, "|"); !strings.HasPrefix(text, "File a.txt:\nabc|[image, image/png, ") || !strings.HasSuffix(text, "|what is this?") {
		t.Errorf("the model was given %q", text)
	}
	if err := s.Send(t.Context(), host.Input{Attached: mcp.Contents{picture(t)}}); err != nil {
		t.Errorf("an image without a text: %v", err)
	}
}

// What a model cannot be given is not left out in silence.
func TestAttachedRefused(t *testing.T) {
	large := picture(t)
	large.Data = append(large.Data, make([]byte, 2<<10)...)
	wrong := picture(t)
	wrong.MIMEType = "image/webp"
	for name, test := range map[string]struct {
		maxImage int
		content  mcp.Contents
		want     string
	}{
		"blind":  {0, mcp.Contents{picture(t)}, "the model scripted takes no images"},
		"large":  {1 << 10, mcp.Contents{large}, "the model scripted takes at most 1024"},
		"wrong":  {1 << 10, mcp.Contents{wrong}, "an image is said to be image/webp, and is not"},
		"long":   {0, mcp.Contents{mcp.Text(strings.Repeat("a", 4<<20))}, "the attached texts have more than"},
		"broken": {0, mcp.Contents{mcp.Text("\xff")}, "an attached text is no valid UTF-8"},
		"audio":  {0, mcp.Contents{mcp.Audio([]byte("RIFF"), "audio/wav")}, "cannot be attached"},
		"many":   {1 << 10, images(t, 17), "there are more than 16 images"},
	} {
		m := &scripted{info: host.ModelInfo{MaxImage: test.maxImage}}
		s := begin(t, newHost(t, &host.Options{}, nil), m)
		err := s.Send(t.Context(), host.Input{Text: "look", Attached: test.content})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(m.requests()); n != 0 {
			t.Errorf("%s: the model was asked %d times", name, n)
		}
	}
}

func images(t *testing.T, n int) (list mcp.Contents) {
	t.Helper()
	for range n {
		list = append(list, picture(t))
	}
	return list
}
