package ui

import "strings"

// A Block is a part of a model's text: some blocks of markdown.
type Block struct {
	Source string
	// Follows says that it goes on with what the block before ended in the middle of.
	Follows bool
}

// maxOpen bounds a block that is not complete, in bytes: what must be shown anew with each
// part that comes.
const maxOpen = 8 << 10

// Blocks splits a model's text, while it comes, into blocks that do not change any more
// and the one that does. A block that grows beyond 8 KiB is given out in parts. The zero
// value is at the beginning of a text. It must not be used by two goroutines at once.
type Blocks struct {
	text    blockBuffer
	opener  string // begins the code that the open block is in the middle of
	follows bool
}

// Add adds text and returns the blocks that are complete.
func (b *Blocks) Add(text string) []Block {
	var list []Block
	for text != "" {
		n := boundary(text, min(len(text), maxOpen/2))
		if n == 0 {
			n = len(text)
		}
		if done := b.text.add(text[:n]); done != "" {
			list = append(list, b.block(done))
			b.opener, b.follows = "", false
		}
		text = text[n:]
		if b.text.text.Len() > maxOpen {
			list = append(list, b.cut())
		}
	}
	return list
}

// Open is the block that is not complete.
func (b *Blocks) Open() Block { return b.block(b.text.text.String()) }

// Rest is the block that is not complete, at the end of the text.
func (b *Blocks) Rest() Block {
	rest := b.Open()
	*b = Blocks{}
	return rest
}

// block is a part of the text, as code where it is in the middle of it.
func (b *Blocks) block(source string) Block {
	if b.opener != "" && source != "" {
		source = b.opener + "\n" + source
	}
	return Block{source, b.follows}
}

// cut takes what there is of a block that is too long, up to the end of a line if there
// is one.
func (b *Blocks) cut() Block {
	all := b.text.text.String()
	at := b.text.line
	if at == 0 {
		at = boundary(all, len(all))
	}
	part := b.block(all[:at])
	b.follows, b.opener = true, b.text.fence
	rest := all[at:]
	b.text.text.Reset()
	b.text.text.WriteString(rest)
	b.text.line, b.text.split = max(b.text.line-at, 0), 0
	return part
}

// IsBlank reports whether there is nothing to show in the block.
func (b Block) IsBlank() bool { return strings.TrimSpace(b.Source) == "" }
