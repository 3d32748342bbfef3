//go:build !race

package streamable_test

// raceEnabled says that memory is measured in vain.
const raceEnabled = false
