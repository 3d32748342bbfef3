package storetest

import (
	"bytes"
	"strings"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

var values = []check{
	{"what is returned belongs to the caller", false, testCopies},
	{"text is kept as it is", false, testText},
	{"JSON is kept as it is", false, testJSON},
	{"a result, a call and an answer of many megabytes are kept", false, testBig},
	{"tasks are seen by those who open the store later", false, testReopen},
}

func testCopies(k *kit) {
	n := newTask("t", "ada")
	n.Records = records("first")
	_, l := k.add(n)
	n.Records[0].Key = "overwritten"
	some := records("r")
	k.change(l, tasks.Change{Ask: question("a"), Records: some})
	some[0].Key = "overwritten"
	first := k.get("t")
	want := k.get("t")
	first.Status, first.Message, first.Questions[0].Key = tasks.Failed, "overwritten", "overwritten"
	first.Questions = append(first.Questions[:0], *question("x"))
	k.equal("the task", k.get("t"), want)
	answers := mcp.InputResponses{"a": []byte(`1`)}
	_, err := k.store.Answer(k.Context(), "t", "ada", answers)
	k.equal("error of Answer", err, nil)
	answers["a"] = []byte(`2`)
	for range 2 {
		got, err := k.store.Answers(k.Context(), l)
		k.equal("error of Answers", err, nil)
		k.equal("answers", got, mcp.InputResponses{"a": []byte(`1`)})
		got["a"], got["b"] = []byte(`3`), []byte(`4`)
	}
	k.change(l, tasks.Change{Release: true})
	c := k.claimOne()
	kept := append(records("first"), records("r")...)
	k.equal("records", c.Records, kept)
	c.Records[0].Key, c.Task.Message = "overwritten", "overwritten"
	k.change(c.Lease, tasks.Change{Release: true})
	again := k.claimOne()
	k.equal("records of another claim", again.Records, kept)
	k.equal("message of another claim", again.Task.Message, "")
}

func testText(k *kit) {
	for i, text := range []string{
		"", " ", "it's \"quoted\" \\ `so`", "%s $1 ?1 :a @b", "line\r\n\ttab", "a\x00b", "\x00", "\u2028\u202e\ufeff",
		"日本語 \U0001F600", "\xff\xfe invalid", "</script>&amp;", strings.Repeat("long ", 10_000),
	} {
		n := newTask(name("t", i), "owner "+text)
		n.LimitKey, n.Tool, n.Message = "key "+text, "tool "+text, "message "+text
		_, l := k.add(n)
		got, err := k.store.Get(k.Context(), n.ID, n.Owner)
		if err != nil {
			k.Fatalf("Get for the owner %.40q: %v", n.Owner, err)
		}
		k.equal("tool and message", []string{got.Tool, got.Message}, []string{n.Tool, n.Message})
		k.equal("tasks of the owner", k.listed(tasks.Query{Owner: n.Owner, Most: 10}), n.ID)
		got = k.change(l, tasks.Change{Message: &text})
		k.equal("message", got.Message, text)
		_, err = k.store.Cancel(k.Context(), n.ID, n.Owner, "because "+text)
		k.equal("error of Cancel", err, nil)
		got, err = k.store.Get(k.Context(), n.ID, n.Owner)
		k.equal("error of Get", err, nil)
		k.equal("message", got.Message, "because "+text)
	}
}

// texts are JSON values that a column of JSON would refuse or change.
var texts = []string{
	`{}`, `null`, `"\u0000"`, `"<&>\u2028` + "\u2028" + `"`, `1.0`, `1e400`, `123456789012345678901234567890`,
	`{"b":1,"a":2}`, `"\ud83d\ude00"`, `{"a":{"b":[1,2,{"c":null}]}}`, `""`, `-0`,
}

func testJSON(k *kit) {
	l := k.create("t")
	want := mcp.InputResponses{}
	var some []server.Record
	for i, text := range texts {
		key := name("key", i) + text
		q := &tasks.Question{Key: key, Method: "elicitation/create", Params: []byte(text)}
		got := k.change(l, tasks.Change{Ask: q})
		k.equal("questions", got.Questions, []tasks.Question{*q})
		k.equal("questions that Get returns", k.get("t").Questions, got.Questions)
		want[key] = []byte(text)
		_, err := k.store.Answer(k.Context(), "t", "ada", mcp.InputResponses{key: []byte(text)})
		k.equal("error of Answer", err, nil)
		some = append(some, server.Record{Kind: server.RecordOnce, Key: key, Value: []byte(text)})
	}
	answers, err := k.store.Answers(k.Context(), l)
	k.equal("error of Answers", err, nil)
	k.equal("answers", answers, want)
	k.change(l, tasks.Change{Records: some, Release: true})
	c := k.claimOne()
	k.equal("records", c.Records, some)
	k.change(c.Lease, tasks.Change{End: &tasks.End{Status: tasks.Cancelled}})
	for i, text := range texts {
		l := k.create(name("t", i))
		text = " " + text + "\n"
		k.change(l, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(text)}})
		k.equal("result", string(k.get(l.ID).Result), text)
	}
}

func testBig(k *kit) {
	big := append(append([]byte(`"`), bytes.Repeat([]byte("0123456789abcdef"), 1<<20)...), '"')
	n := newTask("t", "ada")
	n.Call = big
	_, l := k.add(n)
	k.change(l, tasks.Change{
		Ask: question("a"), Records: []server.Record{{Kind: server.RecordOnce, Key: "big", Value: big}}, Release: true,
	})
	c := k.claimOne()
	if !bytes.Equal(c.Call, big) || len(c.Records) != 1 || !bytes.Equal(c.Records[0].Value, big) {
		k.Errorf("a call of %d bytes and %d records were kept", len(c.Call), len(c.Records))
	}
	_, err := k.store.Answer(k.Context(), "t", "ada", mcp.InputResponses{"a": big})
	k.equal("error of Answer", err, nil)
	answers, err := k.store.Answers(k.Context(), c.Lease)
	if err != nil || !bytes.Equal(answers["a"], big) {
		k.Errorf("an answer of %d bytes was kept, error %v", len(answers["a"]), err)
	}
	k.change(c.Lease, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: big}})
	if got := k.get("t"); !bytes.Equal(got.Result, big) {
		k.Errorf("a result of %d bytes was kept", len(got.Result))
	}
}

func testReopen(k *kit) {
	l := k.create("t")
	want := k.change(l, tasks.Change{Ask: question("a")})
	other := k.Open(k)
	k.equal("durable", other.Durable(), k.store.Durable())
	got, err := other.Get(k.Context(), "t", "ada")
	k.equal("error of Get", err, nil)
	k.equal("the task", got, want)
	if k.get("t").Created.Sub(got.Created) > time.Millisecond {
		k.Error("times differ")
	}
}
