package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/principal"
)

// manyRules are n rules, of which none matches the query: the most work for Decide. The shapes are the
// names of manyShapes.
func manyRules(shape string, n int) ([]policy.Rule, *policy.Query) {
	q := &policy.Query{
		Server: "files", Name: "write_file", Arguments: mcp.RawValue(`{"path":"/home/ada/notes/today.md","mode":"w","n":[1,2,3]}`),
		Principal: &principal.Principal{Issuer: "https://id.example", Subject: "ada", Groups: []string{"staff", "writers"}},
		Labels:    []policy.Label{policy.LabelPrivate}, Time: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Dir: "/home/ada",
	}
	var all []policy.Rule
	for i := range n {
		r := policy.Rule{Effect: policy.Effect(i % 4), Server: "files", Name: "write_*"}
		switch shape {
		case "servers":
			r.Server = fmt.Sprintf("server-%d", i)
		case "names":
			r.Name = fmt.Sprintf("read_%d_*", i)
		case "wildcards":
			r.Server, r.Name = fmt.Sprintf("f*%d", i), fmt.Sprintf("*_%d_*e", i)
		case "callers":
			r.Groups = []string{fmt.Sprintf("group-%d", i)}
		case "arguments":
			r.Where = []policy.Predicate{{Pointer: "/path", Op: policy.OpInside, Dirs: []string{fmt.Sprintf("/home/user-%d", i)}}}
		case "values":
			r.Where = []policy.Predicate{{Pointer: "/n/*", Op: policy.OpEquals, Values: []mcp.RawValue{mcp.RawValue(fmt.Sprint(i + 4))}}}
		default:
			panic(shape)
		}
		all = append(all, r)
	}
	return all, q
}

var manyShapes = []string{"servers", "names", "wildcards", "callers", "arguments", "values"}

func BenchmarkDecide10000(b *testing.B) {
	for _, shape := range manyShapes {
		b.Run(shape, func(b *testing.B) {
			all, q := manyRules(shape, 10_000)
			p := made(b, all)
			b.ReportAllocs()
			for b.Loop() {
				if v := p.Decide(q); v.Rule != nil {
					b.Fatal(v.Why())
				}
			}
		})
	}
}

func BenchmarkLint10000(b *testing.B) {
	for _, shape := range manyShapes {
		b.Run(shape, func(b *testing.B) {
			all, _ := manyRules(shape, 10_000)
			p := made(b, all)
			for b.Loop() {
				if len(p.Lint()) != 0 {
					b.Fatal("findings")
				}
			}
		})
	}
}

// A decision allocates for the query, and not for each rule.
func TestDecideAllocations(t *testing.T) {
	for _, shape := range manyShapes {
		all, q := manyRules(shape, 1000)
		p := made(t, all)
		if n := testing.AllocsPerRun(10, func() { p.Decide(q) }); n > 12 {
			t.Errorf("%s: %v allocations", shape, n)
		}
	}
}
