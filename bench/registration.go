package main

import (
	"fmt"
	"runtime"

	"github.com/parley-mcp/parley/server"
)

// registrationCeiling is how many times more a feature may allocate when
// 8,000 are added than when 1,000 are.
const registrationCeiling = 1.5

// guardRegistration says what adding features allocates, at once and singly,
// and whether it grows with their number alone.
func guardRegistration() (lines []string, ok bool) {
	ok = true
	for _, way := range []struct {
		name string
		add  func(*server.Server, []server.Feature)
	}{
		{"at once", func(s *server.Server, list []server.Feature) { s.Add(list...) }},
		{"singly", func(s *server.Server, list []server.Feature) {
			for _, f := range list {
				s.Add(f)
			}
		}},
	} {
		few, many := allocatedEach(1000, way.add), allocatedEach(8000, way.add)
		line := fmt.Sprintf("registration %s: %.0f bytes each of 8,000 resources, %.0f of 1,000: %.2f times, at most %.1f",
			way.name, many, few, many/few, registrationCeiling)
		if many > registrationCeiling*few {
			line += ": broken"
			ok = false
		}
		lines = append(lines, line)
	}
	return lines, ok
}

// allocatedEach is how many bytes a server allocates for each of n resources
// that are added to it.
func allocatedEach(n int, add func(*server.Server, []server.Feature)) float64 {
	list := make([]server.Feature, n)
	for i := range list {
		list[i] = server.Text(fmt.Sprintf("bench:%d", i), "a text", "")
	}
	s := server.New("registration", "1", nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	add(s, list)
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
}
