package doctor

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// The form of JUnit's reports: one suite for the server, one test case for each code. A code
// fails that has errors or warnings; its notes are output.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Classname string        `xml:"classname,attr"`
		Failure   *junitFailure `xml:"failure,omitempty"`
		SystemOut string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit is a report as JUnit's XML.
func JUnit(r *Report) ([]byte, error) {
	suite := junitSuite{Name: xmlText(r.Server)}
	for _, code := range codes {
		c := junitCase{Name: code.ID + " " + code.Title, Classname: "parley.doctor." + strings.ToLower(strings.Split(code.ID, "-")[1])}
		var lines []string
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Code == code.ID {
				lines = append(lines, fmt.Sprintf("%s: %s\n  clause: %s\n  fix: %s", f.Where, f.Reason, f.Clause, f.Fix))
			}
		}
		text := xmlText(strings.Join(lines, "\n"))
		switch {
		case len(lines) == 0:
		case code.Severity == Note:
			c.SystemOut = text
		default:
			c.Failure = &junitFailure{fmt.Sprintf("%s: %s (%d)", code.Severity, code.Title, len(lines)), string(code.Severity), text}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Tests = len(suite.Cases)
	var b bytes.Buffer
	b.WriteString(xml.Header)
	e := xml.NewEncoder(&b)
	e.Indent("", "  ")
	err := e.Encode(junitSuites{Name: "parley doctor", Tests: suite.Tests, Failures: suite.Failures, Suites: []junitSuite{suite}})
	b.WriteByte('\n')
	return b.Bytes(), err
}

// xmlText replaces what XML cannot carry.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r >= 0x20 && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 {
			return r
		}
		return '\uFFFD'
	}, s)
}
