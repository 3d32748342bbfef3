package mcp

import (
	"encoding/base64"
	"errors"
	"slices"

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
	// Annotations say for whom it is, and how important.
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
	// Annotations say for whom they are, and how important.
	Annotations *Annotations `json:"annotations,omitzero"`
	// Icons are pictures for them.
	Icons []Icon `json:"icons,omitzero"`
	// Meta is metadata.
	Meta Meta `json:"_meta,omitzero"`
}

// Annotations are hints of a server about content or a resource.
type Annotations struct {
	// Audience says for whom it is; nil is absent.
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
	out, err := wire.Append(slices.Grow(dst, size), &struct {
		ResultBase
		Cacheable
	}{r.ResultBase, r.Cacheable})
	if err != nil {
		return dst, err
	}
	out = append(reopen(out), `"contents":[`...)
	for i := range r.Contents {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = r.Contents[i].appendJSON(out); err != nil {
			return dst, err
		}
	}
	return append(out, "]}"...), nil
}

func (c *ResourceContents) appendJSON(dst []byte) ([]byte, error) {
	j := c.json()
	j.Blob = nil
	dst, err := wire.Append(dst, &j)
	if err != nil || c.Blob == nil {
		return dst, err
	}
	dst = append(reopen(dst), `"blob":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, c.Blob), `"}`...), nil
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
