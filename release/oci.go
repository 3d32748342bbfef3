package main

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user of the image.
const nobody = 65532

// Media types of the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *imagePlatform    `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type imagePlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        *descriptor  `json:"config,omitempty"`
	Layers        []descriptor `json:"layers,omitempty"`
	Manifests     []descriptor `json:"manifests,omitempty"`
}

type imageConfig struct {
	Created time.Time `json:"created"`
	imagePlatform
	Config struct {
		User       string
		Env        []string
		Entrypoint []string
		WorkingDir string
		Labels     map[string]string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// image returns an OCI image layout as a tar archive: from nothing, with the
// program, the certificates of public authorities and a user without rights.
func image(r *release, programs map[platform]*program) ([]byte, error) {
	roots, err := authorities()
	if err != nil {
		return nil, err
	}
	l := layout{roots: roots}
	var images []descriptor
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		d, err := l.image(r, p, programs[p])
		if err != nil {
			return nil, err
		}
		images = append(images, d)
	}
	index, err := l.json(typeIndex, &manifest{SchemaVersion: 2, MediaType: typeIndex, Manifests: images})
	if err != nil {
		return nil, err
	}
	index.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.number()}
	top, err := json.Marshal(&manifest{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{index}})
	if err != nil {
		return nil, err
	}
	l.files = append(l.files,
		file{name: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		file{name: "index.json", mode: 0o644, data: top})
	return tarball(l.files, r.when)
}

// A layout collects the blobs of images.
type layout struct {
	roots []byte // the certificates of public authorities
	files []file
}

func (l *layout) blob(mediaType string, data []byte) descriptor {
	digest := digestOf(data)
	l.files = append(l.files, file{name: "blobs/sha256/" + digest, mode: 0o644, data: data})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(data)}
}

func (l *layout) json(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	return l.blob(mediaType, data), err
}

// image adds the image of one platform.
func (l *layout) image(r *release, p platform, prog *program) (descriptor, error) {
	user := fmt.Sprint(nobody)
	layer, err := tarball([]file{
		{name: "usr/bin/parley", mode: 0o755, data: prog.data},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: l.roots},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/root:/sbin/nologin\nparley:x:" + user + ":" + user + "::/home/parley:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\nparley:x:" + user + ":\n")},
		{name: "home/parley/", mode: 0o700, uid: nobody},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/share/doc/parley/LICENSE", mode: 0o644, data: r.licence},
		{name: "usr/share/doc/parley/LICENCES.txt", mode: 0o644, data: prog.notices},
	}, r.when)
	if err != nil {
		return descriptor{}, err
	}
	small, err := compressed(layer)
	if err != nil {
		return descriptor{}, err
	}
	c := imageConfig{Created: r.when, imagePlatform: imagePlatform{Architecture: p.arch, OS: p.os}}
	c.Config.User = user + ":" + user
	c.Config.Env = []string{"PATH=/usr/bin", "HOME=/home/parley"}
	c.Config.Entrypoint = []string{"/usr/bin/parley"}
	c.Config.WorkingDir = "/home/parley"
	c.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "parley",
		"org.opencontainers.image.version":  r.number(),
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.source":   "https://" + home,
	}
	c.RootFS.Type = "layers"
	c.RootFS.DiffIDs = []string{"sha256:" + digestOf(layer)}
	config, err := l.json(typeConfig, &c)
	if err != nil {
		return descriptor{}, err
	}
	d, err := l.json(typeManifest, &manifest{
		SchemaVersion: 2, MediaType: typeManifest, Config: &config,
		Layers: []descriptor{l.blob(typeLayer, small)},
	})
	d.Platform = &c.imagePlatform
	return d, err
}

// authorities returns the certificates that Mozilla trusts without a condition.
func authorities() ([]byte, error) {
	var text []byte
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // a file of certificates cannot say it
		}
		if _, err := x509.ParseCertificate(root.Certificate); err != nil {
			return nil, err
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
	}
	return text, nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
