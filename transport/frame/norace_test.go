//go:build !race

package frame_test

// raceEnabled says that memory is measured in vain.
const raceEnabled = false
