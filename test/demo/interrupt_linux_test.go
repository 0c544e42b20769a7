package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/test/cluster"
)

// tellMe makes the test below, in a process of its own, the demo.
const tellMe = "BERTH_DEMO_TEST_TELL_ME"

// TestInterrupt: an interrupt in the middle of the story ends everything that was started.
func TestInterrupt(t *testing.T) {
	if os.Getenv(tellMe) != "" {
		os.Exit(run())
	}
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	demo := exec.Command(os.Args[0], "-test.run=^TestInterrupt$")
	demo.Env = append(os.Environ(), tellMe+"=yes")
	var stderr strings.Builder
	demo.Stderr = &stderr
	out, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	children := map[int]string{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "3. ") {
			children = childrenOf(t, demo.Process.Pid)
			if err := demo.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasPrefix(lines.Text(), "4. ") {
			t.Error("the demo went on after the interrupt")
		}
	}
	_ = demo.Wait() // the exit code is in ProcessState
	if code := demo.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d; it said:\n%s", code, exitInterrupted, stderr.String())
	}
	if want := "\nInterrupted; everything that was started has ended.\n"; stderr.String() != want {
		t.Errorf("it said %q, want %q", stderr.String(), want)
	}
	if len(children) != 7 { // etcd, three of Kubernetes, Kueue, KWOK, Berth
		t.Errorf("at the interrupt the demo had %d children, want 7", len(children))
	}
	for pid, started := range children {
		if cluster.StartTime(pid) == started {
			t.Errorf("process %d still runs", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// childrenOf are the processes that a process has started, with their start times.
func childrenOf(t *testing.T, parent int) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int]string{}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// "pid (name) state ppid …", see proc(5); the name may hold spaces and parentheses.
		var state string
		var pid, ppid int
		_, _ = fmt.Sscan(string(text), &pid)
		_, _ = fmt.Sscan(string(text[strings.LastIndexByte(string(text), ')')+1:]), &state, &ppid)
		if started := cluster.StartTime(pid); ppid == parent && started != "" {
			children[pid] = started
		}
	}
	return children
}
