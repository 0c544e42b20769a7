package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/invariants"
)

// TestStory tells the whole story under the eyes of the invariants.
func TestStory(t *testing.T) {
	d := testDemo(t)
	parts := d.parts()
	tell := func(parts []part) {
		for _, p := range parts {
			if err := d.phase(t.Context(), p); err != nil {
				t.Fatalf("%v\n%s", err, d.out)
			}
		}
	}
	last := len(parts) - 1
	tell(parts[:1])
	watcher := invariants.Watch(t, d.cluster.RESTConfig())
	tell(parts[1:last])
	watcher.Stop() // it needs the API server, which the last part stops
	tell(parts[last:])

	text := d.out.(*bytes.Buffer).String()
	for _, want := range []string{
		"a  train-a  4 pods, tpu-4x4  holds tpu-4x4-00; 4 of 4 pods run\n",
		"The API server refuses: device tpu-2x2-20 of pool pod-a (driver tpu.example.com) cannot be allocated",
		"| node-12 b12 | node-13 b13 | node-14 b14 | node-15 b15 |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the story lacks %q:\n%s", want, text)
		}
	}
	for _, p := range d.cluster.Processes() {
		if pid := p.PID(); pid != 0 {
			t.Errorf("%s still runs as process %d", p.Name(), pid)
		}
	}
}

// TestControllerEndsByItself: the demo notices at once, names the process, quotes its log and stops the rest.
func TestControllerEndsByItself(t *testing.T) {
	d := testDemo(t)
	parts := d.parts()
	for _, p := range parts[:2] {
		if err := d.phase(t.Context(), p); err != nil {
			t.Fatalf("%v\n%s", err, d.out)
		}
	}
	controller, err := os.FindProcess(d.cluster.Process(controllerName).PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := controller.Kill(); err != nil {
		t.Fatal(err)
	}
	err = d.phase(t.Context(), parts[2])
	if err == nil {
		t.Fatal("a gang runs without the controller")
	}
	err = d.fail(t.Context(), err)
	t.Cleanup(func() { os.RemoveAll(d.cluster.Dir) }) // a failed demo keeps its logs
	for _, want := range []string{
		"train-a asks for a 4x4: it gets one as a whole: berth-controller: ended by itself: signal: killed\n",
		"lines of berth-controller.log\n",
		"all logs are kept in " + d.cluster.Dir,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

func testDemo(t *testing.T) *demo {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	root, err := cluster.FindRepository(".")
	if err != nil {
		t.Fatal(err)
	}
	d := newDemo(&bytes.Buffer{}, false, root)
	t.Cleanup(func() {
		if d.cluster == nil {
			return
		}
		if err := d.cluster.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
	})
	return d
}
