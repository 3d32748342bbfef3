package clausetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each flaw of a table is told, and a right one has none.
func TestProblems(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a_test.go": "package a\nfunc TestA(t *testing.T) { t.Log() }\nfunc TestEmpty(t *testing.T) {}\n" +
			"func TestOther(f *testing.F) { f.Log() }\nfunc (x) TestMethod(t *testing.T) { t.Log() }\n",
		"guide.md": "# Page\n\n## First\n\nNothing.\n\n## Host\n\n- Ask the\n  person.\n\n## Last\n\nAsk nobody.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	guide := filepath.Join(dir, "guide.md")
	tested := func(text string, side Side, tests ...string) Clause {
		return Clause{Text: text, Side: side, Tests: tests}
	}
	told := func(side Side, heading, says string, tests ...string) Clause {
		return Clause{Text: "a: b", Side: side, Heading: heading, Says: says, Tests: tests}
	}
	right := []Clause{
		tested("Part: does it", Server, "TestA"),
		tested("Part: reads it", Client, "TestA"),
		tested("Part: shows it", Host, "TestA"),
		{Text: "Part: asks", Side: Host, Heading: "Host", Says: "Ask the person"},
		{Text: "Part: asks first", Side: Server, Heading: "Host", Says: "Ask the person"},
	}
	if got, err := Problems(dir, guide, right); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
	for want, c := range map[string]Clause{
		"a: b: it has no test":              tested("a: b", Server),
		"it has no test":                    tested("a: b", Host),
		"a: b: there is no test TestB":      tested("a: b", Client, "TestA", "TestB"),
		"a: b: there is no test TestEmpty":  tested("a: b", Client, "TestEmpty"),
		"a: b: there is no test TestOther":  tested("a: b", Client, "TestOther"),
		"a: b: there is no test TestMethod": tested("a: b", Client, "TestMethod"),
		"b: it has no test":                 told(Client, "Host", "Ask the person"),
		`does not say "Ask nobody" below`:   told(Host, "Host", "Ask nobody"),
		`below "Other"`:                     told(Host, "Other", "Ask the person"),
		"has words of it":                   told(Host, "Host", ""),
		"and no test":                       told(Server, "Host", "Ask the person", "TestA"),
		`the side "" is none`:               tested("a: b", "", "TestA"),
		"b: write the section":              tested("b", Server, "TestA"),
		"Part: does it: write the section":  right[0],
	} {
		got, err := Problems(dir, guide, append(right[:4:4], c))
		if err != nil || len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("want %q: %q, %v", want, got, err)
		}
	}
	if _, err := Problems(dir, guide+"x", right); err == nil {
		t.Error("a guide that does not exist")
	}
}
