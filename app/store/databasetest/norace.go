//go:build !race

package databasetest

// Race says that the race detector is on, with which SQLite takes ten times as long.
const Race = false
