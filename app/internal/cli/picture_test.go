package cli_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
)

// picture is a PNG of one colour.
func picture(c color.Color) []byte {
	const size = 4
	m := image.NewRGBA(image.Rect(0, 0, size, size))
	for i := range size * size {
		m.Set(i%size, i/size, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // memory
	}
	return b.Bytes()
}
