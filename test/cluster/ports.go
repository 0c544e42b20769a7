package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Ports come from below the ephemeral ranges of Linux and macOS: there, no outgoing connection can grab the port of a
// component while a test keeps it stopped.
const (
	firstPort = 20000
	lastPort  = 31999
)

// portLocks are the ports a cluster owns. A port is owned through a lock on a file named after it, which the kernel
// drops when the process ends, so nothing needs cleaning up after a crash.
type portLocks struct {
	held []*os.File
}

// take returns a port that nobody listens on and that no other cluster on this machine will take.
func (p *portLocks) take() (int, error) {
	dir := filepath.Join(os.TempDir(), "berth-cluster-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	count := lastPort - firstPort + 1
	for i, start := 0, rand.IntN(count); i < count; i++ {
		port := firstPort + (start+i)%count
		lock, err := tryLock(filepath.Join(dir, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if !portFree(port) {
			lock.Close()
			continue
		}
		p.held = append(p.held, lock)
		return port, nil
	}
	return 0, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

func (p *portLocks) release() {
	for _, lock := range p.held {
		lock.Close()
	}
	p.held = nil
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// awaitPortsFree returns once ports can be listened on again; a program that has exited may hold them a moment longer.
func awaitPortsFree(ctx context.Context, ports []int) error {
	for _, port := range ports {
		err := await(ctx, 10*time.Second, func(context.Context) (bool, error) { return portFree(port), nil })
		if err != nil {
			return fmt.Errorf("port %d is still in use: %w", port, err)
		}
	}
	return nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
