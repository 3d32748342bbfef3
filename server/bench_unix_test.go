//go:build unix

package server_test

import (
	"strings"
	"syscall"
	"testing"
)

// cpu is the processor time that this process has used, in seconds.
func cpu(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkEchoStdio is a typed echo tool over lines on pipes of the operating
// system, 64 requests in flight. The load generator's time is part of it.
func BenchmarkEchoStdio(b *testing.B) {
	for _, version := range bothEras {
		b.Run(version, func(b *testing.B) {
			in, out := serveFiles(b, version)
			lines := benchLines(version, strings.Repeat("hello ", 8))
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu(b)
			pump(b, in, out, lines, pipelined)
			b.ReportMetric((cpu(b)-before)/float64(b.N)*1e5, "cpu-s/100k")
		})
	}
}
