package tasks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/oauth"
)

// The operations of a task, in a store that keeps 10,000.
func BenchmarkStore(b *testing.B) {
	for name, dsn := range databasetest.All {
		b.Run(name, func(b *testing.B) {
			db := open(b, dsn(b))
			for i := range 10_000 {
				n := newTask(fmt.Sprintf("kept %d", i))
				n.LimitKey = fmt.Sprint(i % 100)
				_, l, err := db.Create(b.Context(), n, time.Minute)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := db.Change(b.Context(), l, tasks.Change{End: &tasks.End{Status: tasks.Completed, Result: []byte(`{}`)}}); err != nil {
					b.Fatal(err)
				}
			}
			var held []tasks.Lease
			b.Run("Create", func(b *testing.B) {
				for b.Loop() {
					n := newTask(oauth.NewSecret())
					n.MaxByKey, n.MaxAll = 1_000_000, 1_000_000
					_, l, err := db.Create(b.Context(), n, time.Minute)
					if err != nil {
						b.Fatal(err)
					}
					held = append(held, l)
				}
			})
			l := held[0]
			b.Run("Record", func(b *testing.B) {
				for b.Loop() {
					if _, err := db.Change(b.Context(), l, tasks.Change{Records: newRecords("r")}); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("Renew100", func(b *testing.B) {
				for b.Loop() {
					if lost, err := db.Renew(b.Context(), held[:min(100, len(held))], time.Minute); err != nil || len(lost) > 0 {
						b.Fatal(lost, err)
					}
				}
			})
			b.Run("Get", func(b *testing.B) {
				for b.Loop() {
					if _, err := db.Get(b.Context(), l.ID, "ada"); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("Claim nothing", func(b *testing.B) {
				for b.Loop() {
					if got, err := db.Claim(b.Context(), time.Minute, 10, nil); err != nil || len(got) > 0 {
						b.Fatal(len(got), err)
					}
				}
			})
			b.Run("Expire nothing", func(b *testing.B) {
				for b.Loop() {
					if n, err := db.Expire(b.Context()); err != nil || n > 0 {
						b.Fatal(n, err)
					}
				}
			})
			b.Run("List", func(b *testing.B) {
				for b.Loop() {
					if got, err := db.List(b.Context(), tasks.Query{Owner: "ada", Most: 50, After: l.ID}); err != nil || len(got) != 50 {
						b.Fatal(len(got), err)
					}
				}
			})
		})
	}
}
