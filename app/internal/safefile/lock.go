// Package safefile is for files that several processes change: a lock that processes wait for, and
// writing such that a reader, also after a crash, has the old content or the new.
package safefile

import (
	"context"
	"os"
	"sync"
	"time"
)

// Lock waits until no other holds the lock of the file at path, in this process or another, and takes
// it. The file is made if there is none, and stays: it is a file of its own, not one that is replaced.
// unlock gives the lock up, and may be called more than once; the system does when the process ends.
// The error is that of ctx if it ends first. It may be called by many goroutines.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// Systems can wait for a lock, but not for a lock or the end of a context.
	const longest = 250 * time.Millisecond
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, longest) {
		taken, err := TryLock(f)
		if err != nil {
			_ = f.Close() // the first error says more
			return nil, err
		}
		if taken {
			// Closing the file gives up the lock.
			return sync.OnceFunc(func() { _ = f.Close() }), nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			_ = f.Close()
			return nil, ctx.Err()
		}
	}
}
