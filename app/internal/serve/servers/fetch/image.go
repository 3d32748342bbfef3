package fetch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // the formats that package image reads
	"image/jpeg"
	"image/png"
	"io"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
)

// maxSide is the most pixels on a side of an image that is given as content. The APIs of models refuse larger
// ones, and with them each later request of a conversation that has one.
const maxSide = 8000

// maxPixels is the most pixels of an image that is given as content: decoding it takes up to half a second
// and 200 MB. A small body can have more pixels than memory has.
const maxPixels = 17_000_000

// pngEnd is the chunk that ends a PNG.
const pngEnd = "\x00\x00\x00\x00IEND\xaeB\x60\x82"

// progressive is the marker of the frame of a progressive JPEG. The data of other segments can have it, too.
const progressive = "\xff\xc2"

// checkImage returns why a body of a type in shownImages cannot be given as content, or "". It decodes the
// pixels, of a GIF those of the first picture. Of WebP and of progressive JPEG it reads only the header and
// looks for the end: each scan of the latter takes the time of the whole picture, and a body can have tens
// of thousands. One image is decoded at a time. The error is the cause of the cancellation of ctx.
func (f *fetcher) checkImage(ctx context.Context, kind string, body []byte) (reason string, err error) {
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
			return damaged, nil
		}
		return "", nil
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(body))
	switch {
	case err != nil, !whole, config.Width <= 0, config.Height <= 0:
		return damaged, nil
	case config.Width > maxSide, config.Height > maxSide:
		return fmt.Sprintf("it has %d x %d pixels and a side may have %d", config.Width, config.Height, maxSide), nil
	case config.Width*config.Height > maxPixels:
		return fmt.Sprintf("it has %d x %d pixels and may have %d in all", config.Width, config.Height, maxPixels), nil
	case kind == "image/jpeg" && bytes.Contains(body, []byte(progressive)):
		return "", nil
	}
	select {
	case f.decoding <- struct{}{}:
		defer func() { <-f.decoding }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	_, _, err = image.Decode(&pollingReader{ctx, bytes.NewReader(body)})
	if err := servers.Ended(ctx); err != nil {
		return "", err
	}
	_, rareJPEG := errors.AsType[jpeg.UnsupportedError](err)
	_, rarePNG := errors.AsType[png.UnsupportedError](err)
	if err != nil && !rareJPEG && !rarePNG {
		return damaged, nil
	}
	return "", nil
}

// A pollingReader fails when the call is cancelled. It polls at each read, since a few bytes can be many
// pixels.
type pollingReader struct {
	ctx context.Context //nolint:containedctx // of the call whose image this is
	r   io.Reader
}

func (r *pollingReader) Read(p []byte) (int, error) {
	if err := servers.Ended(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
