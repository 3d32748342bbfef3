package host_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// pieces is a turn of pieces.
func pieces(list ...host.Piece) turn { return func(*host.Request) []host.Piece { return list } }

// summaries are the requests of a model that ask for a summary.
func (m *scripted) summaries() []*host.Request {
	return slices.DeleteFunc(slices.Clone(m.requests()), func(r *host.Request) bool {
		return !strings.HasPrefix(r.System, "Summarize the conversation")
	})
}

// Only a summary that a model has written to its end, as text, replaces the conversation. What
// was cut off is asked for once more, without a bound. What it cost is in the log in any case.
func TestCompactNeedsSummary(t *testing.T) {
	text := host.Piece{Text: "They greeted each other."}
	stop := func(r host.StopReason) host.Piece { return host.Piece{Stop: r} }
	thought := host.Piece{Reasoning: &host.Reasoning{Text: "Hm."}}
	call := host.Piece{Call: &mcp.ToolUseContent{ID: "1", Name: "write", Input: mcp.RawValue(`{}`)}}
	cutOff := []host.Piece{text, stop(host.StopLength)}
	for name, test := range map[string]struct {
		attempts [][]host.Piece
		want     string // in the error; empty: there is a summary
	}{
		"no reason":               {[][]host.Piece{{text}}, ""},
		"end":                     {[][]host.Piece{{thought, text, stop(host.StopEnd)}}, ""},
		"sequence":                {[][]host.Piece{{text, stop(host.StopSequence)}}, ""},
		"cut off once":            {[][]host.Piece{cutOff, {text, stop(host.StopEnd)}}, ""},
		"cut off before the text": {[][]host.Piece{{thought, stop(host.StopLength)}, {thought, text}}, ""},
		"cut off twice":           {[][]host.Piece{cutOff, cutOff}, "its answer was cut off twice"},
		"cut off, then refused":   {[][]host.Piece{cutOff, {stop(host.StopRefusal)}}, "refused to answer"},
		"nothing":                 {[][]host.Piece{{}}, "it wrote no text"},
		"blank":                   {[][]host.Piece{{{Text: " \n"}, {Text: "\t\u00a0"}, stop(host.StopEnd)}}, "it wrote no text"},
		"reasoning alone":         {[][]host.Piece{{thought, stop(host.StopEnd)}}, "it reasoned, and wrote no text"},
		"refusal":                 {[][]host.Piece{{{Text: "I will not."}, stop(host.StopRefusal)}}, "it refused to answer"},
		"call":                    {[][]host.Piece{{text, call}}, "it called a tool"},
		"call of which is said":   {[][]host.Piece{{text, stop(host.StopCalls)}}, "it called a tool"},
		"other":                   {[][]host.Piece{{text, stop(host.StopOther)}}, `stop reason "other"`},
		"unknown":                 {[][]host.Piece{{text, stop("tired")}}, `stop reason "tired"`},
		"too long":                {[][]host.Piece{{{Text: strings.Repeat("x", 32<<10+1)}}}, "at most 32768"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &scripted{}
			s := begin(t, newHost(t, nil, nil), m)
			ask(t, s)
			var turns []turn
			for _, attempt := range test.attempts {
				turns = append(turns, pieces(append([]host.Piece{{Usage: &host.Usage{Input: 100}}}, attempt...)...))
			}
			m.then(turns...)
			err := s.Compact(t.Context())
			if test.want == "" && err != nil {
				t.Fatal(err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "the conversation is unchanged: try again, or use another model")) {
				t.Errorf("the error is %v", err)
			}
			asked := m.summaries()
			if len(asked) != len(test.attempts) || asked[0].MaxTokens == 0 || len(asked) > 1 && asked[1].MaxTokens != 0 {
				t.Errorf("%d requests, %+v", len(asked), asked)
			}
			if u := s.Snapshot().Usage; u.Input != int64(100*len(test.attempts)) {
				t.Errorf("the usage is %+v", u)
			}
			want := "They greeted each other."
			if test.want != "" {
				want = "please"
			}
			if n := len(bodies[*host.CompactionRecord](s)); (n == 1) != (test.want == "") {
				t.Errorf("%d summaries are in the log", n)
			}
			ask(t, s)
			last := m.requests()[len(m.requests())-1].Messages[0].Blocks[0].Content
			if got := host.ContentText(last); !strings.Contains(got, want) {
				t.Errorf("the model is told %q", got)
			}
		})
	}
}

// What a model is given to summarize leaves a quarter of its window for the summary, with the earlier
// summary, which is in it once.
func TestSummaryHasRoom(t *testing.T) {
	for name, test := range map[string]struct{ earlier, words int }{
		"long conversation": {500, 2000}, "long summary": {5000, 2000}, "both short": {20, 10},
	} {
		t.Run(name, func(t *testing.T) {
			const window = 2000
			m := &scripted{}
			s := begin(t, newHost(t, nil, nil), m)
			ask(t, s)
			m.then(pieces(host.Piece{Text: "Earlier. " + strings.Repeat("e", test.earlier)}))
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				m.then(pieces(host.Piece{Text: strings.Repeat("word ", test.words/3) + "newest"}))
				ask(t, s)
			}
			m.info.Window = window
			m.then(pieces(host.Piece{Text: "The summary."}))
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			asked := m.summaries()
			text := host.ContentText(asked[len(asked)-1].Messages[0].Blocks[0].Content)
			if n := len(text); n > window*3+100 {
				t.Errorf("%d bytes are to be summarized", n)
			}
			if strings.Count(text, "Earlier. ") != 1 || !strings.Contains(text, "newest") {
				t.Errorf("to be summarized is %.100q … %q", text, text[max(0, len(text)-100):])
			}
		})
	}
}

// A conversation without text has no summary of the offline model.
func TestCompactOfflineWithoutText(t *testing.T) {
	m := &scripted{info: host.ModelInfo{Offline: true, MaxImage: 1 << 20}, turns: []turn{pieces()}}
	s := begin(t, newHost(t, nil, nil), m)
	png := &mcp.ImageContent{MIMEType: "image/png", Data: []byte("\x89PNG\x0D\x0A\x1A\x0A")}
	if err := s.Send(t.Context(), host.Input{Attached: mcp.Contents{png}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(t.Context()); err == nil || len(bodies[*host.CompactionRecord](s)) != 0 {
		t.Errorf("summarized: %v, %s", err, kinds(s))
	}
}

// A run whose conversation could not be summarized continues with the whole of it, tells the
// person once, and does not try again; the next run does.
func TestRunWithoutSummary(t *testing.T) {
	ran := 0
	long := strings.Repeat("word ", 1300) // 1,625 tokens, estimated
	for name, test := range map[string]struct {
		window int
		fits   bool
	}{"fits": {2000, true}, "does not fit": {1600, false}} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, &host.Options{Policy: allowing(t, "*")}, map[string]transport.Handler{"one": serverOf(t, echo("echo", &ran))})
			m := &scripted{info: host.ModelInfo{Window: test.window}, turns: []turn{pieces(host.Piece{Text: long})}}
			s := begin(t, h, m)
			ask(t, s)
			refusal := pieces(host.Piece{Usage: &host.Usage{Input: 7}}, host.Piece{Stop: host.StopRefusal})
			m.then(refusal, use("one__echo", `{"text":"a"}`), use("one__echo", `{"text":"b"}`))
			text, end, err := s.Ask(t.Context(), "go on")
			notices := bodies[*host.NoticeRecord](s)
			if !test.fits {
				if err == nil || !strings.Contains(err.Error(), "does not fit into the window of the model, 1600 tokens") ||
					!strings.Contains(err.Error(), "it refused to answer; the conversation is unchanged") || end.Outcome != host.OutcomeFailed || len(notices) != 0 {
					t.Errorf("%v; the end is %+v, the notices %+v", err, end, notices)
				}
				return
			}
			if err != nil || text != "end" || end.Steps != 3 {
				t.Errorf("%q, %+v, %v", text, end, err)
			}
			if len(notices) != 1 || notices[0].Level != mcp.LogWarning || !strings.Contains(notices[0].Text, "was not summarized: model scripted: it refused to answer. It is unchanged") {
				t.Errorf("the person is told %+v", notices)
			}
			if n := len(m.summaries()); n != 1 || len(bodies[*host.CompactionRecord](s)) != 0 || s.Snapshot().Usage.Input != 7 {
				t.Errorf("asked for a summary %d times: %s", n, kinds(s))
			}
			last := m.requests()[len(m.requests())-1]
			if got := host.ContentText(last.Messages[1].Blocks[0].Content); got != long {
				t.Errorf("the model is told %.50q", got)
			}
			m.then(pieces(host.Piece{Text: "The summary."}))
			ask(t, s)
			if list := bodies[*host.CompactionRecord](s); len(list) != 1 || list[0].Summary != "The summary." {
				t.Errorf("the next run has the summaries %+v", list)
			}
		})
	}
}

// An endlessSummary is a model that does not finish a summary.
type endlessSummary struct {
	*scripted
	reached chan struct{}
}

func (m *endlessSummary) Generate(ctx context.Context, r *host.Request) iter.Seq2[host.Piece, error] {
	if !strings.HasPrefix(r.System, "Summarize the conversation") {
		return m.scripted.Generate(ctx, r)
	}
	return func(yield func(host.Piece, error) bool) {
		close(m.reached)
		<-ctx.Done()
		yield(host.Piece{}, ctx.Err())
	}
}

// A run that is cancelled while its conversation is summarized ends, and nothing is replaced.
func TestCancelSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &endlessSummary{
			&scripted{info: host.ModelInfo{Window: 2000}, turns: []turn{pieces(host.Piece{Text: strings.Repeat("word ", 1300)})}},
			make(chan struct{}),
		}
		s := begin(t, newHost(t, nil, nil), m)
		ask(t, s)
		if err := s.Send(t.Context(), host.Input{Text: "go on"}); err != nil {
			t.Fatal(err)
		}
		<-m.reached
		s.Cancel()
		if end, err := s.Wait(t.Context()); !errors.Is(err, host.ErrCancelled) || end.Outcome != host.OutcomeCancelled {
			t.Errorf("the run ended as %+v, %v", end, err)
		}
		if len(bodies[*host.CompactionRecord](s))+len(bodies[*host.NoticeRecord](s)) != 0 {
			t.Errorf("the records are %s", kinds(s))
		}
	})
}
