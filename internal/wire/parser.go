package wire

import (
	"strings"
	"sync"
)

// A Parser reads the envelopes of messages: objects that are read once, with
// one member that is kept. It belongs to one goroutine, from [NewParser] to
// [Parser.Free].
type Parser struct {
	s     scanner
	top   Index
	inner inner
	words [4]string // the last short ones, so that a usual one takes no memory
	next  int
}

var parsers = sync.Pool{New: func() any { return new(Parser) }}

// NewParser returns a Parser.
func NewParser() *Parser { return parsers.Get().(*Parser) }

// Free gives the memory of the parser back. Neither the parser nor what Parse
// returned may be used afterwards; texts, and the kept member, may.
func (p *Parser) Free() {
	p.top, p.inner = Index{}, inner{}
	p.s.clear()
	parsers.Put(p)
}

// Parse is [ParseObject] which in the same pass indexes the first member called
// a or b that is an object, in x, a zero Index of the caller's. [Object.Object]
// finds it there.
func (p *Parser) Parse(data []byte, lim Limits, x *Index, a, b string) (Object, error) {
	p.inner = inner{names: [2]string{a, b}, index: x}
	x.members = x.inline[:0]
	p.s.inner = &p.inner
	return p.s.parseObject(data, lim, &p.top)
}

// longestWord is the longest word that a Parser remembers.
const longestWord = 64

// Word is [Text] for words that come again and again, such as methods.
func (p *Parser) Word(raw RawValue) string {
	if len(raw) > longestWord {
		return Text(raw)
	}
	for _, w := range p.words {
		if string(raw[1:len(raw)-1]) == w {
			return w
		}
	}
	word := Text(raw)
	if strings.IndexByte(word, '\\') < 0 { // else its literal may be that of another one
		p.words[p.next] = word
		p.next = (p.next + 1) % len(p.words)
	}
	return word
}
