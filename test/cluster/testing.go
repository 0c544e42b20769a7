package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// ForTest starts a cluster that ends with the test. If the test fails, the ends of all logs are printed and the folder
// with them is kept. A component that ended by itself fails the test. With -short the test is skipped.
//
// A first build of the components outlasts go test's default time-out of ten minutes: run "make components" before.
func ForTest(t testing.TB, options Options) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	if options.Log == nil {
		options.Log = testLog{t}
	}
	c, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		report(t, c)
		if err := c.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
	})
	return c
}

func report(t testing.TB, c *Cluster) {
	if err := c.Crashed(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		c.KeepDir()
		t.Logf("%slogs are kept in %s", c.LogTails(30), c.Dir)
	}
}

type testLog struct{ testing.TB }

func (l testLog) Write(line []byte) (int, error) {
	l.Helper()
	l.Logf("%s", line)
	return len(line), nil
}

// Shared is one cluster for all tests of a package, started by the first test that asks for it:
//
//	var shared = cluster.Shared{Options: cluster.Options{Without: cluster.OnlyAPIServer}}
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
//	func TestSomething(t *testing.T) { c := shared.ForTest(t) … }
type Shared struct {
	Options Options

	once    sync.Once
	cluster *Cluster
	err     error
}

// Main runs the package's tests, stops the cluster if one was started, and returns the exit code.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if s.cluster == nil {
		return code
	}
	if err := s.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the cluster:", err)
		return max(code, 1)
	}
	return code
}

// ForTest returns the package's cluster. If t fails, the ends of the logs are printed and the folder is kept.
// Tests that stop or pause components must start or resume them again. With -short the test is skipped.
func (s *Shared) ForTest(t testing.TB) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	s.once.Do(func() {
		options := s.Options
		if options.Log == nil {
			options.Log = os.Stderr // it outlives t
		}
		s.cluster, s.err = Start(context.Background(), options)
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	t.Cleanup(func() { report(t, s.cluster) })
	return s.cluster
}
