package tasks

import "time"

// MemoryAt is Memory with a clock.
func MemoryAt(now func() time.Time) Store { return newMemory(now) }
