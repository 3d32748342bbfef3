//go:build race

package server_test

// raceEnabled says that memory is measured in vain.
const raceEnabled = true
