package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// A bom is a CycloneDX 1.6 document, as far as it is used here.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   bomMetadata `json:"metadata"`
	Components []component `json:"components"`
}

type bomMetadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string    `json:"type"`
	Ref     string    `json:"bom-ref"`
	Name    string    `json:"name"`
	Version string    `json:"version"`
	PURL    string    `json:"purl"`
	Hashes  []bomHash `json:"hashes,omitempty"`
}

type bomHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// materials lists what a program was built from, as the program itself tells:
// the modules with their checksums, and Go.
func materials(r *release, program []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, err
	}
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Components: []component{}}
	b.Metadata.Timestamp = r.when.Format("2006-01-02T15:04:05Z07:00")
	b.Metadata.Component = golang("application", info.Main.Path, info.Main.Version, info.Main.Sum)
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, golang("library", m.Path, m.Version, m.Sum))
	}
	b.Components = append(b.Components, golang("library", "std", strings.TrimPrefix(info.GoVersion, "go"), ""))
	text, err := json.MarshalIndent(&b, "", "  ")
	return append(text, '\n'), err
}

// golang describes a module. sum is its checksum as in go.sum.
func golang(kind, path, version, sum string) component {
	purl := "pkg:golang/" + path + "@" + version
	c := component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
	if digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && sum != "" {
		c.Hashes = []bomHash{{"SHA-256", hex.EncodeToString(digest)}}
	}
	return c
}
