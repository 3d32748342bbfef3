package flows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// batching is a server with tools that batches need.
func batching(t testing.TB) *server.Server {
	o := quiet()
	o.Limits.MaxBatch = 5
	return with(
		server.Tool("sum", "Adds.", sum),
		server.Tool("wait", "Waits.", func(ctx context.Context, _ mcp.None) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}),
		server.Tool("roots", "Tells the roots.", tellRoots),
	)(t, o)
}

const ping = `{"jsonrpc":"2.0","id":%d,"method":"ping"}`

// members are the elements of an array of responses, by id.
func (m message) members() map[string]message {
	m.t.Helper()
	var list []raw
	if err := wire.Decode(raw(m.text), &list); err != nil {
		m.t.Fatalf("%s: %v", m.text, err)
	}
	all := make(map[string]message)
	for _, one := range list {
		member := message{m.t, string(one)}
		all[member.at("id")] = member
	}
	if len(all) != len(list) {
		m.t.Errorf("ids are not single in %s", m.text)
	}
	return all
}

// Proves: FLOW-BATCH-P. Ruling 10.
func TestFLOW_BATCH_P(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, batching(t), nil)
		l.ask(`[`+ping+`]`, 1).fails(-32600, "null") // before negotiation; ruling 9
		l.shake(march, `{"roots":{}}`)
		got := l.ask(`[`+ping+`,{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"sum","arguments":{"a":1,"b":2}}},{"jsonrpc":"2.0","id":3,"method":"none"}]`, 1).members()
		if len(got) != 3 {
			t.Fatalf("%d answers", len(got))
		}
		got["1"].want("{}", "result")
		got[`"s"`].want(`[{"type":"text","text":"{\"sum\":3}"}]`, "result", "content")
		got["3"].fails(-32601, "3")
		// A batch of one is answered as an array too.
		if one := l.ask(`[`+ping+`]`, 7).members(); len(one) != 1 || one["7"].at("result") != "{}" {
			t.Errorf("answers %v", one)
		}
		// No initialize inside; the rest of the batch is served.
		got = l.ask(`[`+ping+`,{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}]`, 1).members()
		got["1"].want("{}", "result")
		got["2"].fails(-32600, "2")
		// Only notifications give nothing.
		l.send(`[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","method":"notifications/y"}]`)
		l.Silent()
		l.ask(`[]`).fails(-32600, "null")
		l.ask(`[`+strings.Repeat(ping+`,`, 5)+ping+`]`, 1, 2, 3, 4, 5, 6).fails(-32600, "null") // over MaxBatch: the whole of it
		l.ask(`[`+ping+`,{"jsonrpc":"2.0","id":9,"result":{}}]`, 1).fails(-32600, "null")       // mixed
		// An element that is no message gets its own error.
		got = l.ask(`[`+ping+`,7,{"jsonrpc":"1.0","id":8,"method":"ping"}]`, 1).members()
		got["1"].want("{}", "result")
		got["8"].fails(-32600, "8")
		got["null"].fails(-32600, "null")
		l.ask(`[`+ping, 1).fails(-32700, "null") // cut off
		l.Silent()
	})
}

// Proves: FLOW-BATCH-P: a request that is cancelled leaves the batch, and does
// not hold the others back for ever; answers to questions may come as a batch.
func TestFLOW_BATCH_P_Cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, batching(t), nil)
		l.shake(march, `{"roots":{}}`)
		l.send(`[`+ping+`,{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}]`, 1)
		l.Silent()
		l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		if got := l.next().members(); len(got) != 1 || got["1"].at("result") != "{}" {
			t.Errorf("answers %v", got)
		}
		l.send(`[{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"roots"}}]`)
		ask := l.next()
		ask.want(`"roots/list"`, "method")
		l.send(`[{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///a","name":"n"}]}}]`, ask.at("id"))
		if got := l.next().members(); !strings.Contains(got["3"].at("result"), "file:///a n") {
			t.Errorf("answers %v", got)
		}
		// An array of responses alone, even of unknown ones, is not answered.
		l.send(`[{"jsonrpc":"2.0","id":77,"result":{}},{"jsonrpc":"2.0","id":78,"error":{"code":1,"message":"x"}}]`)
		l.Silent()
	})
}

// Proves: FLOW-BATCH-P. Ruling 10: one clear error in every other revision. Ruling 9:
// the id that could not be read is null in older ones and left out in newer.
func TestFLOW_BATCH_P_Refused(t *testing.T) {
	for _, version := range versions {
		if version == march {
			continue
		}
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := dial(t, batching(t), nil)
				id := "null" // not negotiated, or an older revision
				if version != newest {
					l.shake(version, "{}")
				}
				if version == autumn {
					id = ""
				}
				params := ""
				if version == newest {
					params = fmt.Sprintf(`,"params":{%s}`, meta("{}"))
				}
				m := l.ask(`[{"jsonrpc":"2.0","id":1,"method":"tools/list"%s},{"jsonrpc":"2.0","id":2,"method":"tools/list"%s}]`, params, params)
				m.fails(-32600, id)
				if !strings.Contains(m.at("error", "message"), "batch") {
					t.Errorf("the error is not clear: %s", m.text)
				}
				l.ask(`[]`).fails(-32600, id)
				l.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/list"%s}`, map[bool]string{true: params}[params != ""]).want("3", "id")
				l.Silent()
			})
		})
	}
}
