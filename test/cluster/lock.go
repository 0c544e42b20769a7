package cluster

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes an exclusive lock on the file at path, creating it, or fails at once if another holds it.
// Closing the file gives the lock back.
func tryLock(path string) (*os.File, error) { return flock(path, syscall.LOCK_EX|syscall.LOCK_NB) }

// lock is tryLock that waits as long as it takes.
func lock(path string) (*os.File, error) { return flock(path, syscall.LOCK_EX) }

func flock(path string, how int) (*os.File, error) {
	// Close-on-exec is Go's default: a child must not keep the lock alive after its parent.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		}
	}
}
