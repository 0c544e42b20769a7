package leadership

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/test/cluster"
)

// process is the real program.
type process struct {
	*cluster.Process
	health string
}

func (w *world) start(t *testing.T, program, name string) *process {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "config.yaml")
	must(t, w.cluster.WriteKubeconfig(kubeconfig, w.cluster.RESTConfig()))
	port, err := w.cluster.FreePort()
	must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	// The lease outlives a moment in which the API server takes in new kinds.
	must(t, os.WriteFile(config, fmt.Appendf(nil, `
apiVersion: config.berth.dev/v1alpha1
kind: BerthConfiguration
leaderElection: {namespace: %s, leaseDuration: 9s, renewDeadline: 6s, retryPeriod: 200ms, writeTimeout: 2s}
health: {bindAddress: %q}
metrics: {bindAddress: "0"}
`, w.namespace, address), 0o600))

	run, err := w.cluster.Run(t.Context(), cluster.Command{
		Name: w.namespace + "-" + name, Path: program, Args: []string{"--config", config, "--kubeconfig", kubeconfig}, Ports: []int{port},
	})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(run.LogTail(1000))
		}
		_ = run.Stop()
	})
	return &process{run, "http://" + address}
}

// awaitExit waits until the process has ended by itself.
func (p *process) awaitExit(t *testing.T, status int) {
	t.Helper()
	eventually(t, "the process ends", func() bool { return p.Crashed() != nil })
	if end, want := p.Crashed().Error(), fmt.Sprintf("exit status %d", status); !strings.HasSuffix(end, want) {
		t.Errorf("%s, want %s", end, want)
	}
	must(t, p.Stop()) // a process that was stopped has not crashed
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !check(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func (p *process) ready() bool {
	response, err := http.Get(p.health + "/readyz")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (p *process) leads() bool { return p.said(`"msg":"Leading"`) }

func (p *process) said(text string) bool {
	log, err := os.ReadFile(p.LogPath())
	return err == nil && strings.Contains(string(log), text)
}

// A leader that is stopped while its lease runs out finds out when it goes on, leaves the lease alone and exits, so that
// whatever supervises it starts it anew. A stand-by is ready before it leads. SIGTERM is an orderly end.
func TestStoppedProcess(t *testing.T) {
	w := newWorld(t)
	root, err := cluster.FindRepository(".")
	must(t, err)
	program := filepath.Join(t.TempDir(), "berth-controller")
	build := exec.Command("go", "build", "-o", program, "./cmd/berth-controller")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}

	// What the real controllers watch.
	kueue := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue")
	kueue.Dir = root
	dir, err := kueue.Output()
	must(t, err)

	first := w.start(t, program, "first")
	eventually(t, "the first leads", first.leads)
	if first.ready() {
		t.Error("ready without Kueue")
	}
	must(t, w.cluster.Apply(t.Context(), filepath.Join(strings.TrimSpace(string(dir)), "config/components/crd/bases")))
	eventually(t, "the leader is ready", first.ready)
	second := w.start(t, program, "second")
	eventually(t, "the stand-by is ready", second.ready)
	if second.leads() {
		t.Error("there are two leaders")
	}
	before := w.holder(t)

	must(t, first.Pause())
	eventually(t, "the second leads", second.leads)
	after := w.holder(t)
	if after == before {
		t.Fatal("the second leads without the lease")
	}
	must(t, first.Resume())
	first.awaitExit(t, 1)
	if !first.said("leader election lost") {
		t.Error("the log does not say why the process ended")
	}
	if got := w.holder(t); got != after {
		t.Errorf("the lease went from %q to %q", after, got)
	}

	must(t, syscall.Kill(second.PID(), syscall.SIGTERM))
	second.awaitExit(t, 0)
	if got := w.holder(t); got != "" {
		t.Errorf("the lease was not released; it is held by %q", got)
	}
}
