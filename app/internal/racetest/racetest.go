// Package racetest says whether the race detector is on.
package racetest

import "testing"

// Enabled says that it is: programs start slowly, and what is measured of memory and time means
// nothing.
const Enabled = enabled

// SkipSerial skips a test in runs with -short, as "make race" and "make quick" are: one that takes
// long, and in which no two goroutines touch the same memory, or which starts programs. The race
// detector finds nothing in it; "make soak-race" runs it with the detector, too.
func SkipSerial(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long; not with -short")
	}
}
