package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/test/cluster"
)

// killMe makes the test below, in a process of its own, start a cluster and never stop it.
const killMe = "BERTH_CLUSTER_TEST_KILL_ME"

func TestChildrenDieWithTheirParent(t *testing.T) {
	if os.Getenv(killMe) != "" {
		leaveChildren(t)
	}
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestChildrenDieWithTheirParent$")
	parent.Env = append(os.Environ(), killMe+"="+t.TempDir())
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	must(t, err)
	must(t, parent.Start())
	var children []int
	for lines := bufio.NewScanner(out); len(children) < 2 && lines.Scan(); {
		var pid int
		if _, err := fmt.Sscanf(lines.Text(), "child %d", &pid); err == nil {
			children = append(children, pid)
		}
	}
	for _, pid := range children {
		if cluster.StartTime(pid) == "" {
			t.Errorf("child %d does not run", pid)
		}
	}
	must(t, parent.Process.Kill())
	if err := parent.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("parent ended with %v", err)
	}
	if len(children) != 2 {
		t.Fatalf("children %v, want two", children)
	}
	for _, pid := range children {
		eventually(t, func(context.Context) (bool, error) { return cluster.StartTime(pid) == "", nil })
	}
}

func leaveChildren(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: os.Getenv(killMe), Without: cluster.OnlyAPIServer})
	must(t, err)
	for _, p := range c.Processes() {
		fmt.Printf("child %d\n", p.PID())
	}
	<-time.After(time.Minute) // to be killed long before
	t.Fatal("nobody killed this process")
}
