package faults_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/berth-dev/berth/test/faults"
)

func TestNothingComesThroughAWireThatIsCut(t *testing.T) {
	f := newFixture(t, "wire")
	wire := faults.NewWire()
	c := newClient(t, wire.Config(f.cfg))
	clientset, err := kubernetes.NewForConfig(wire.Config(f.cfg))
	must(t, err)
	watch, err := clientset.CoreV1().ConfigMaps(f.namespace).Watch(f.ctx, watchOptions())
	must(t, err)
	defer watch.Stop()
	must(t, c.Create(f.ctx, f.configMap("before")))
	<-watch.ResultChan()

	wire.Cut()
	if err := c.Create(f.ctx, f.configMap("after")); !errors.Is(err, faults.ErrCut) {
		t.Errorf("a write got %v", err)
	}
	if f.exists(t, "after") {
		t.Error("the write came through")
	}
	must(t, f.client.Create(f.ctx, f.configMap("by-others")))
	end := time.After(limit)
	for open := true; open; {
		select {
		case event, more := <-watch.ResultChan():
			if open = more; more && event.Type == "ADDED" {
				t.Errorf("the watch delivered %v", event.Object)
			}
		case <-end:
			t.Fatal("the watch goes on")
		}
	}
}
