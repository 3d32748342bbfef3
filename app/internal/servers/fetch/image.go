package fetch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	_ "image/gif" // the formats that image.DecodeConfig reads
	_ "image/jpeg"
	_ "image/png"
)

// maxSide is the most pixels on a side of an image that is given as content. The APIs of models refuse larger
// ones, and with them each later request of a conversation that has one.
const maxSide = 8000

// pngEnd is the chunk that ends a PNG.
const pngEnd = "\x00\x00\x00\x00IEND\xaeB\x60\x82"

// checkImage returns why a body of a type in shownImages cannot be given as content, or "". It reads the
// header and looks for the end, but does not decode the pixels: a small body can have more than memory
// has.
func checkImage(kind string, body []byte) (reason string) {
	const damaged = "it is damaged or cut off"
	var whole bool
	switch kind {
	case "image/png":
		whole = bytes.Contains(body, []byte(pngEnd))
	case "image/jpeg": // the end comes after the last scan; one before it is that of a thumbnail
		whole = bytes.LastIndex(body, []byte("\xff\xd9")) > bytes.LastIndex(body, []byte("\xff\xda"))
	case "image/gif":
		whole = bytes.HasSuffix(bytes.TrimRight(body, "\x00"), []byte(";"))
	case "image/webp": // the standard library does not read it
		const least = 25 // bytes of the smallest header
		if len(body) < least || int64(binary.LittleEndian.Uint32(body[4:])) < least-8 || int64(binary.LittleEndian.Uint32(body[4:])) > int64(len(body)-8) {
			return damaged
		}
		return ""
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(body))
	switch {
	case err != nil, !whole, config.Width <= 0, config.Height <= 0:
		return damaged
	case config.Width > maxSide, config.Height > maxSide:
		return fmt.Sprintf("it has %d x %d pixels and a side may have %d", config.Width, config.Height, maxSide)
	}
	return ""
}
