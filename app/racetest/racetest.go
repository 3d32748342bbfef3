// Package racetest says whether the race detector is on.
package racetest

import "testing"

// Enabled says that it is: programs start slowly, and what is measured of memory and time means
// nothing.
const Enabled = enabled

// SkipSerial skips a test if the detector is on: one that takes long and does one thing after the
// other, or starts programs that do, so that there is nothing to detect and all takes ten times as
// long.
func SkipSerial(t *testing.T) {
	t.Helper()
	if Enabled {
		t.Skip("it is serial: the race detector finds nothing here")
	}
}
