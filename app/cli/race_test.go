//go:build race

package cli_test

// raceDetector says that programs are built with the race detector, and so start slowly: scripts
// that start many are for runs without it.
const raceDetector = true
