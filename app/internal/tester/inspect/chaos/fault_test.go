package chaos_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/chaos"
)

func TestParseRates(t *testing.T) {
	for _, test := range []struct {
		list []string
		want chaos.Rates
	}{
		{[]string{"drop"}, chaos.Rates{chaos.Drop: chaos.NamedRate}},
		{[]string{"drop=1", "429=0.5", "delay=0"}, chaos.Rates{chaos.Drop: 1, chaos.Status429: 0.5, chaos.Delay: 0}},
		{nil, chaos.DefaultRates()},
	} {
		got, err := chaos.ParseRates(test.list)
		if err != nil || !cmp.Equal(got, test.want) {
			t.Errorf("%q: %v, %v, want %v", test.list, got, err, test.want)
		}
	}
	got, err := chaos.ParseRates([]string{"all=0.25", "drop=0"})
	if err != nil || len(got) != len(chaos.Faults()) || got[chaos.Drop] != 0 || got[chaos.HTML] != 0.25 {
		t.Errorf("all: %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"dorp":       `there is no fault "dorp"; there are all, delay, slow`,
		"drop=2":     "a number from 0 to 1",
		"drop=often": "a number from 0 to 1",
		"drop=NaN":   "a number from 0 to 1",
		"drop=":      "a number from 0 to 1",
		"":           "there is no fault",
	} {
		if _, err := chaos.ParseRates([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The guide has the table of faults.
func TestGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../../docs/guide/chaos.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range chaos.Faults() {
		over := "pipe, HTTP"
		if !f.Pipe {
			over = "HTTP"
		}
		if want := fmt.Sprintf("| `%s` | %s | %s |\n", f.Fault, over, f.Does); !strings.Contains(string(page), want) {
			t.Errorf("the guide has no line %s", want)
		}
	}
}
