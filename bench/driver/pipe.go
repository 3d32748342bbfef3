// Package driver sends prebuilt requests as cheaply as it can, over HTTP and over
// pipes, and looks at every answer. It shares the processors with the server:
// what it costs is the same for every server, and in none of their figures but
// requests per second and latency.
package driver

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/parley-mcp/parley/bench/fixture"
)

// A Pipe is a server at the other end of two pipes, with a number of requests
// under way.
type Pipe struct {
	in, out *os.File
	r       *bufio.Reader
	check   Check
	slots   []slot
	batch   []byte // requests that wait to be written
}

// A slot is the place of one request under way. Its ids, modulo the number of
// slots, say which it is.
type slot struct {
	request request
	id      uint64
	busy    bool
	sent    time.Time
}

// maxLine is the longest line that a Pipe reads.
const maxLine = 256 << 10

// OpenPipe speaks to a server over pipes, so many requests at once. Legacy servers
// want a handshake first: Greet.
func OpenPipe(in, out *os.File, slots int, call Call, era Era, check Check) *Pipe {
	p := &Pipe{in: in, out: out, r: bufio.NewReaderSize(out, maxLine), check: check, slots: make([]slot, slots)}
	base := firstID + uint64(slots) - firstID%uint64(slots)
	for i := range p.slots {
		p.slots[i].request = line(call, era)
		p.slots[i].id = base + uint64(i)
	}
	return p
}

// Greet shakes hands.
func (p *Pipe) Greet() error {
	if _, err := p.in.WriteString(handshake + "\n"); err != nil {
		return err
	}
	answer, err := p.some()
	if err != nil {
		return err
	}
	if !bytes.Contains(answer, []byte(`"protocolVersion":"`+fixture.Legacy)) {
		return fmt.Errorf("initialize: %.300q", answer)
	}
	_, err = p.in.WriteString(initialized + "\n")
	return err
}

// Run keeps every slot busy for a time and waits for the last answers. What is
// answered together is asked again together, in one write.
func (p *Pipe) Run(d time.Duration) (Measured, error) { return p.run(d, math.MaxInt) }

// Times is Run for n requests. There must be at least one for each slot.
func (p *Pipe) Times(n int) (Measured, error) { return p.run(longest, n) }

func (p *Pipe) run(d time.Duration, most int) (Measured, error) {
	var m Measured
	var latency histogram
	start := time.Now()
	end := start.Add(d)
	if err := p.out.SetReadDeadline(end.Add(stall)); err != nil {
		return m, err
	}
	for i := range p.slots {
		p.ask(i, start)
	}
	asked := len(p.slots)
	for busy := len(p.slots); busy > 0; {
		if err := p.flush(); err != nil {
			return m, err
		}
		lines, err := p.some()
		if err != nil {
			return m, err
		}
		now := time.Now()
		for line := range bytes.Lines(lines) {
			i, err := p.answered(line)
			switch {
			case err != nil:
				return m, err
			case i < 0:
				continue
			}
			latency.add(now.Sub(p.slots[i].sent))
			m.Size = len(line)
			if now.Before(end) && asked < most {
				asked++
				p.ask(i, now)
			} else {
				busy--
			}
		}
	}
	m.Elapsed = time.Since(start)
	m.Requests = latency.n
	m.P50, m.P99 = latency.percentile(50), latency.percentile(99)
	return m, nil
}

// ask puts the next request of a slot into the batch.
func (p *Pipe) ask(i int, now time.Time) {
	s := &p.slots[i]
	s.id += uint64(len(p.slots))
	s.request.number(s.id)
	s.busy, s.sent = true, now
	p.batch = append(p.batch, s.request.bytes...)
}

func (p *Pipe) flush() error {
	_, err := p.in.Write(p.batch)
	p.batch = p.batch[:0]
	return err
}

// some waits for a line, and gives all the whole lines that are there.
func (p *Pipe) some() ([]byte, error) {
	for want := 1; ; want = p.r.Buffered() + 1 {
		_, err := p.r.Peek(want)
		have, _ := p.r.Peek(p.r.Buffered())
		if end := bytes.LastIndexByte(have, '\n'); end >= 0 {
			_, _ = p.r.Discard(end + 1) // it stays where it is until the next read
			return have[:end+1], nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// answered finds the slot that a line answers, or -1 for a notification.
func (p *Pipe) answered(line []byte) (int, error) {
	id, ok := idOf(line)
	if !ok {
		if bytes.Contains(line, []byte(`"method":`)) {
			return -1, nil
		}
		return -1, fmt.Errorf("no answer: %.300q", line)
	}
	s := &p.slots[id%uint64(len(p.slots))]
	if !s.busy || s.id != id {
		return -1, fmt.Errorf("an answer to %d, which nobody asked: %.300q", id, line)
	}
	s.busy = false
	_, err := p.check(line)
	return int(id % uint64(len(p.slots))), err
}

// idOf reads the id of a message.
func idOf(line []byte) (id uint64, ok bool) {
	const mark = `"id":`
	at := bytes.Index(line, []byte(mark))
	if at < 0 {
		return 0, false
	}
	for _, c := range line[at+len(mark):] {
		if c < '0' || c > '9' {
			break
		}
		id, ok = id*10+uint64(c-'0'), true
	}
	return id, ok
}
