package svg_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/bench/plot/svg"
)

var update = flag.Bool("update", false, "write the golden files")

func bars() *svg.Bars {
	return &svg.Bars{
		Title: "Fast & faster", Note: "Longer is better.", Axis: "share", Unit: svg.Percent(), Mark: 100,
		Bars: []svg.Bar{{"ours", 88, "88 %", 0}, {"floor", 100, "100 %", 1}, {"other", 3.2, "3.2 %", 2}, {"beyond", 104, "104 %", 3}},
	}
}

func lines(log bool, r svg.Reference) *svg.Lines {
	return &svg.Lines{
		Title: "Cost against <size>", Note: "A note.", Log: log, Reference: r, ReferenceName: "reference",
		X: svg.Axis{Name: "size", Unit: svg.Bytes()}, Y: svg.Axis{Name: "time", Unit: svg.Microseconds()},
		Lines: []svg.Line{
			{Name: "ours", Kind: 0, Points: []svg.Point{{1 << 10, 20}, {1 << 12, 40}, {1 << 14, 120}}},
			{Name: "floor", Kind: 1, Points: []svg.Point{{1 << 10, 10}, {1 << 14, 30}}},
		},
	}
}

// The pictures do not change unless somebody means it.
func TestGolden(t *testing.T) {
	for name, got := range map[string][]byte{
		"bars.svg":         bars().Draw(),
		"proportional.svg": lines(true, svg.Proportional).Draw(),
		"constant.svg":     lines(false, svg.Constant).Draw(),
	} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Every picture is a document that a reader of XML takes, whatever the texts say,
// and even if there is nothing to draw.
func TestWellFormed(t *testing.T) {
	long := strings.Repeat("<word> & ", 60)
	one := lines(true, svg.Proportional)
	one.Lines = []svg.Line{{Name: "x", Points: []svg.Point{{5, 5}}}}
	for name, data := range map[string][]byte{
		"bars":     (&svg.Bars{Title: long, Note: long, Unit: svg.Count(""), Bars: []svg.Bar{{Name: "\"'<&>", Text: "\x01"}}}).Draw(),
		"no bars":  (&svg.Bars{Unit: svg.Count("")}).Draw(),
		"no lines": (&svg.Lines{X: svg.Axis{Unit: svg.Count("")}, Y: svg.Axis{Unit: svg.Count("")}, Log: true, Reference: svg.Constant}).Draw(),
		"a point":  one.Draw(),
	} {
		if strings.Contains(string(data), "NaN") || strings.Contains(string(data), "Inf") {
			t.Errorf("%s: a measure is no number", name)
		}
		d := xml.NewDecoder(strings.NewReader(string(data)))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}
