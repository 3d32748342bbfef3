package secrets

import (
	"context"
	"os"
	"sync"
	"time"
)

// lockFile waits until no other holds the lock of a file, in this process or
// another, and takes it. The system gives it up when the process ends.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
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
		taken, err := tryLock(f)
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
