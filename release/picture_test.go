package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPicture(t *testing.T) {
	var b strings.Builder
	in := "plain \x1b[1;31mred\x1b[0m \x1b[48;2;1;2;3mground\x1b[49m \x1b[38;5;196mcube\x1b[39m \x1b[7mback\x1b[27m <&>\n\x1b[2K世界x\x1b[3mi\n"
	if err := picture(strings.NewReader(in), &b, "A <screen>"); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{
		"<title>A &lt;screen&gt;</title>", `>plain </text>`, ` fill="#e06c75" font-weight="bold">red</text>`, `fill="#010203"/>`,
		` fill="#ff0000">cube</text>`, ` fill="#1b1f27">back</text>`, "&lt;&amp;&gt;</text>", `textLength="42.0" xml:space="preserve">世界x</text>`,
		`<text x="56.0" y="45.5" textLength="8.4" xml:space="preserve" font-style="italic">i</text>`, `height="64"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("it is no XML: %v\n%s", err, got)
		}
	}
}
