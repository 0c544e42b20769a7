package leadership

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/test/cluster"
)

// process is the real program.
type process struct {
	command *exec.Cmd
	health  string
	log     *safeBuffer
	ended   chan struct{}
}

type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func (w *world) start(t *testing.T, program string) *process {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "config.yaml")
	must(t, w.cluster.WriteKubeconfig(kubeconfig, w.cluster.RESTConfig()))
	port, err := w.cluster.FreePort()
	must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	must(t, os.WriteFile(config, fmt.Appendf(nil, `
apiVersion: config.berth.dev/v1alpha1
kind: BerthConfiguration
leaderElection: {namespace: %s, leaseDuration: %s, renewDeadline: %s, retryPeriod: 200ms, writeTimeout: %s}
health: {bindAddress: %q}
metrics: {bindAddress: "0"}
`, w.namespace, leaseDuration, renewDeadline, writeTimeout, address), 0o600))

	p := &process{
		command: exec.Command(program, "--config", config, "--kubeconfig", kubeconfig),
		health:  "http://" + address,
		log:     &safeBuffer{},
		ended:   make(chan struct{}),
	}
	p.command.Stderr = p.log
	must(t, p.command.Start())
	go func() {
		_ = p.command.Wait() // the exit code is in ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // fails when it has ended
		<-p.ended
		if t.Failed() {
			t.Logf("log of process %d:\n%s", p.command.Process.Pid, p.log.String())
		}
	})
	return p
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	must(t, p.command.Process.Signal(s))
}

func (p *process) awaitExit(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatal("the process runs on")
	}
	if got := p.command.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
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

func (p *process) leads() bool { return strings.Contains(p.log.String(), `"msg":"Leading"`) }

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

	first := w.start(t, program)
	eventually(t, "the first leads", first.leads)
	if first.ready() {
		t.Error("ready without Kueue")
	}
	must(t, w.cluster.Apply(t.Context(), filepath.Join(strings.TrimSpace(string(dir)), "config/components/crd/bases")))
	eventually(t, "the leader is ready", first.ready)
	second := w.start(t, program)
	eventually(t, "the stand-by is ready", second.ready)
	if second.leads() {
		t.Error("there are two leaders")
	}
	before := w.holder(t)

	first.signal(t, syscall.SIGSTOP)
	eventually(t, "the second leads", second.leads)
	after := w.holder(t)
	if after == before {
		t.Fatal("the second leads without the lease")
	}
	first.signal(t, syscall.SIGCONT)
	first.awaitExit(t, 1)
	if !strings.Contains(first.log.String(), "leader election lost") {
		t.Error("the log does not say why the process ended")
	}
	if got := w.holder(t); got != after {
		t.Errorf("the lease went from %q to %q", after, got)
	}

	second.signal(t, syscall.SIGTERM)
	second.awaitExit(t, 0)
	if got := w.holder(t); got != "" {
		t.Errorf("the lease was not released; it is held by %q", got)
	}
}
