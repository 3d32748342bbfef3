// Package racetest says whether the race detector is on.
package racetest

// Enabled says that it is: what is measured of memory and time means nothing.
const Enabled = enabled
