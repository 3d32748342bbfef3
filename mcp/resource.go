package mcp

import (
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/parley-mcp/parley/internal/wire"
)

// Resource is something that can be read from a server (server/resources).
type Resource struct {
	// URI identifies the resource.
	URI string `json:"uri"`
	// Name identifies it for programs.
	Name string `json:"name"`
	// Title is the name for people; empty means Name.
	Title string `json:"title,omitzero"`
	// Description tells the model what it is.
	Description string `json:"description,omitzero"`
	// MIMEType is the type of its contents, if known.
	MIMEType string `json:"mimeType,omitzero"`
	// Size is the number of bytes of its contents, before any encoding; nil is
	// unknown.
	Size *int64 `json:"size,omitzero"`
	// Annotations say which audience it is for, and how important it is.
	Annotations *Annotations `json:"annotations,omitzero"`
	// Icons are pictures for it.
	Icons []Icon `json:"icons,omitzero"`
	// Meta is metadata.
	Meta Meta `json:"_meta,omitzero"`
}

// ResourceTemplate describes a family of resources.
type ResourceTemplate struct {
	// URITemplate is an RFC 6570 template of their URIs.
	URITemplate string `json:"uriTemplate"`
	// Name identifies the template for programs.
	Name string `json:"name"`
	// Title is the name for people; empty means Name.
	Title string `json:"title,omitzero"`
	// Description tells the model what the resources are.
	Description string `json:"description,omitzero"`
	// MIMEType is the type of all their contents, if they share one.
	MIMEType string `json:"mimeType,omitzero"`
	// Annotations say which audience they are for, and how important they are.
	Annotations *Annotations `json:"annotations,omitzero"`
	// Icons are pictures for them.
	Icons []Icon `json:"icons,omitzero"`
	// Meta is metadata.
	Meta Meta `json:"_meta,omitzero"`
}

// Annotations are hints of a server about content or a resource.
type Annotations struct {
	// Audience is the intended readers; nil is absent.
	Audience []Role `json:"audience,omitzero"`
	// Priority is from 0, entirely optional, to 1, effectively required; nil
	// is absent.
	Priority *float64 `json:"priority,omitzero"`
	// LastModified is an ISO 8601 time. Not before 2025-06-18.
	LastModified string `json:"lastModified,omitzero"`
}

// ResourceContents are the contents of a resource, text or bytes: bytes if Blob
// is not nil (though it may be empty), else text.
type ResourceContents struct {
	// URI is the resource, or the part of it that these contents are.
	URI string `json:"uri"`
	// MIMEType is the type of the contents, if known.
	MIMEType string `json:"mimeType,omitzero"`
	// Text is the contents if Blob is nil.
	Text string `json:"text"`
	// Blob is the contents unless it is nil. In JSON it is base64.
	Blob []byte `json:"blob"`
	// Meta is metadata.
	Meta Meta `json:"_meta,omitzero"`
}

// contentsJSON is ResourceContents as JSON has it: one of text and blob.
type contentsJSON struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitzero"`
	Text     *string `json:"text,omitzero"`
	Blob     *[]byte `json:"blob,omitzero"`
	Meta     Meta    `json:"_meta,omitzero"`
}

// MarshalJSON encodes the contents as TextResourceContents or
// BlobResourceContents.
func (c ResourceContents) MarshalJSON() ([]byte, error) { return wire.Marshal(c.json()) }

func (c *ResourceContents) json() contentsJSON {
	j := contentsJSON{URI: c.URI, MIMEType: c.MIMEType, Meta: c.Meta}
	if c.Blob != nil {
		j.Blob = &c.Blob
	} else {
		j.Text = &c.Text
	}
	return j
}

// UnmarshalJSON decodes TextResourceContents or BlobResourceContents. Contents
// with neither or both of text and blob are an error.
func (c *ResourceContents) UnmarshalJSON(data []byte) error {
	var j contentsJSON
	if err := wire.DecodeParams(data, &j); err != nil {
		return err
	}
	*c = ResourceContents{URI: j.URI, MIMEType: j.MIMEType, Meta: j.Meta}
	switch {
	case j.Text != nil && j.Blob != nil:
		return errors.New("resource contents have both text and blob")
	case j.Text != nil:
		c.Text = *j.Text
	case j.Blob != nil:
		c.Blob = *j.Blob
		if c.Blob == nil {
			c.Blob = []byte{}
		}
	default:
		return errors.New("resource contents have neither text nor blob")
	}
	return nil
}

// ListResourcesResult is one page of resources.
type ListResourcesResult struct {
	ResultBase
	Cacheable
	Page
	// Resources are the resources of the page, in the server's order.
	Resources []Resource `json:"resources"`
}

// ListResourceTemplatesResult is one page of resource templates.
type ListResourceTemplatesResult struct {
	ResultBase
	Cacheable
	Page
	// ResourceTemplates are the templates of the page, in the server's order.
	ResourceTemplates []ResourceTemplate `json:"resourceTemplates"`
}

// ReadResourceParams read a resource.
type ReadResourceParams struct {
	RequestBase
	InputBase
	// URI is the resource.
	URI string `json:"uri"`
}

// ReadResourceResult is the contents of a resource, in one or more parts; none
// for what does not exist is wrong, that is an error.
type ReadResourceResult struct {
	ResultBase
	Cacheable
	// Contents are the parts.
	Contents []ResourceContents `json:"contents"`
}

// AppendJSON appends the JSON encoding of the result, with room made at once.
// Bytes become base64 in place, since they may be large and need no check.
func (r *ReadResourceResult) AppendJSON(dst []byte) ([]byte, error) {
	size := 1 << 10
	for i := range r.Contents {
		c := &r.Contents[i]
		size += base64.StdEncoding.EncodedLen(len(c.Blob)) + len(c.Text) + len(c.Text)/8 + len(c.URI) + 64
	}
	out := slices.Grow(dst, size)
	out, err := r.pieces(out, func(out, blob []byte) ([]byte, error) {
		return base64.StdEncoding.AppendEncode(out, blob), nil
	})
	if err != nil {
		return dst, err
	}
	return out, nil
}

// pieces appends the encoding, but for the blobs, which it gives to blob with
// what has been appended before it.
func (r *ReadResourceResult) pieces(dst []byte, blob func(out, blob []byte) ([]byte, error)) ([]byte, error) {
	out, err := wire.Append(dst, &struct {
		ResultBase
		Cacheable
	}{r.ResultBase, r.Cacheable})
	if err != nil {
		return nil, err
	}
	out = append(reopen(out), `"contents":[`...)
	for i := range r.Contents {
		c := &r.Contents[i]
		if i > 0 {
			out = append(out, ',')
		}
		j := c.json()
		j.Blob = nil
		if out, err = wire.Append(out, &j); err != nil {
			return nil, err
		}
		if c.Blob == nil {
			continue
		}
		if out, err = blob(append(reopen(out), `"blob":"`...), c.Blob); err != nil {
			return nil, err
		}
		out = append(out, `"}`...)
	}
	return append(out, "]}"...), nil
}

// streamed is the size of blobs from which a result is written in pieces, if
// there is no more text than that beside them.
const streamed = 64 << 10

// JSONSize is the exact length of the encoding of a result with large blobs,
// and -1 for others.
func (r *ReadResourceResult) JSONSize() int64 {
	blobs, text := int64(0), 0
	for i := range r.Contents {
		blobs += int64(base64.StdEncoding.EncodedLen(len(r.Contents[i].Blob)))
		text += len(r.Contents[i].Text)
	}
	if blobs < streamed || text > streamed {
		return -1
	}
	rest, err := r.pieces(nil, func(out, _ []byte) ([]byte, error) { return out, nil })
	if err != nil {
		return -1
	}
	return int64(len(rest)) + blobs
}

// chunk is how much of a blob is encoded at once: a multiple of three bytes.
const chunk = 48 << 10

// little is what waits for more, so that small blobs share a write.
const little = 16 << 10

// keepRoom is the largest buffer that is kept for another result.
const keepRoom = 256 << 10

var rooms = sync.Pool{New: func() any { return new([]byte) }}

// WriteJSON writes the encoding that AppendJSON appends, without ever holding
// more than a chunk of a blob.
func (r *ReadResourceResult) WriteJSON(w io.Writer) error {
	room := rooms.Get().(*[]byte)
	rest, err := r.pieces(slices.Grow((*room)[:0], base64.StdEncoding.EncodedLen(chunk)+little), func(out, blob []byte) ([]byte, error) {
		for part := range slices.Chunk(blob, chunk) {
			if out = base64.StdEncoding.AppendEncode(out, part); len(out) < little {
				continue
			}
			if _, err := w.Write(out); err != nil {
				return nil, err
			}
			out = out[:0]
		}
		return out, nil
	})
	if err == nil {
		_, err = w.Write(rest)
	}
	// A writer that failed may still hold on to what it was given: that of an
	// HTTP/2 stream does when the stream is reset. Such memory is not used again.
	if err == nil && cap(rest) <= keepRoom {
		*room = rest
		rooms.Put(room)
	}
	return err
}

// reopen takes the end off an object so that a further member can follow.
func reopen(object []byte) []byte {
	object = object[:len(object)-1]
	if object[len(object)-1] == '{' {
		return object
	}
	return append(object, ',')
}

// SubscribeParams ask to be told of changes of a resource. Handshake revisions
// only; the newest one has [ListenParams].
type SubscribeParams struct {
	RequestBase
	// URI is the resource.
	URI string `json:"uri"`
}

// UnsubscribeParams end what SubscribeParams began. Handshake revisions only.
type UnsubscribeParams struct {
	RequestBase
	// URI is the resource.
	URI string `json:"uri"`
}

// ResourceUpdatedParams tell that a resource has changed and may be read again.
type ResourceUpdatedParams struct {
	NotificationBase
	// URI is the resource, or a part of one that was subscribed to.
	URI string `json:"uri"`
}
