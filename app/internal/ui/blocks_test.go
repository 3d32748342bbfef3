package ui_test

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/ui"
)

// shownText is what a list of blocks shows, without the gaps between them.
func shownText(list []ui.Block) string {
	var b strings.Builder
	for _, block := range list {
		b.WriteString(ui.Plain(ui.ParseMarkdown(block.Source), 2000))
	}
	return strings.ReplaceAll(b.String(), "\n", "")
}

// However a text is cut, its blocks show what the whole shows.
func TestBlocksAnySplit(t *testing.T) {
	t.Parallel()
	const text = "# A title\n\nFirst *paragraph*.\n\n```go\nfunc f() {\n\n}\n```\n\n- one\n- two\n\nlast 日本"
	want := shownText([]ui.Block{{Source: text}})
	for size := 1; size <= len(text); size++ {
		var b ui.Blocks
		var list []ui.Block
		for i := 0; i < len(text); i += size {
			list = append(list, b.Add(text[i:min(i+size, len(text))])...)
		}
		list = append(list, b.Rest())
		if got := shownText(list); got != want {
			t.Fatalf("parts of %d bytes show %q, want %q", size, got, want)
		}
		if size < 8 && len(list) < 4 {
			t.Fatalf("parts of %d bytes: %d blocks", size, len(list))
		}
	}
}

func TestBlocksBound(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"code":      "```go\n" + strings.Repeat("x := 1\n", 10_000) + "```\n",
		"paragraph": strings.Repeat("some words\n", 10_000),
		"one token": strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b ui.Blocks
			var list []ui.Block
			for i := 0; i < len(text); i += 100 {
				list = append(list, b.Add(text[i:min(i+100, len(text))])...)
				if open := len(b.Open().Source); open > 9<<10 {
					t.Fatalf("%d bytes are open", open)
				}
			}
			list = append(list, b.Rest())
			var total int
			for i, block := range list {
				if i > 0 && !block.Follows && !block.IsBlank() {
					t.Fatalf("block %d does not follow the one before", i)
				}
				doc := ui.ParseMarkdown(block.Source)
				if len(doc.Nodes) == 0 {
					continue
				}
				if name == "code" && doc.Nodes[0].Kind != ui.NodeCodeBlock {
					t.Fatalf("block %d begins with %s", i, doc.Nodes[0].Kind)
				}
				total += strings.Count(ui.Plain(doc, 100_000), "x") + strings.Count(block.Source, "some")
			}
			if want := strings.Count(text, "x") + strings.Count(text, "some"); total != want {
				t.Errorf("%d of %d are shown", total, want)
			}
		})
	}
}
