package matrix

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/faults"
)

// program builds the real controller.
func program(t *testing.T) string {
	t.Helper()
	root, err := cluster.FindRepository(".")
	must(t, err)
	path := filepath.Join(t.TempDir(), "berth-controller")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/berth-controller")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return path
}

// process is one run of the real controller.
type process struct{ *cluster.Process }

// launch starts the program behind a proxy and waits until its caches are filled.
func (w *world) launch(t *testing.T, program, name string, proxy *faults.Proxy) process {
	t.Helper()
	account, err := w.cluster.ServiceAccountConfig(t.Context(), "berth-system", "berth-controller")
	must(t, err)
	dir := t.TempDir()
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "config.yaml")
	must(t, w.cluster.WriteKubeconfig(kubeconfig, proxy.Config(account)))
	port, err := w.cluster.FreePort()
	must(t, err)
	health := fmt.Sprintf("127.0.0.1:%d", port)
	must(t, os.WriteFile(config, fmt.Appendf(nil, `
apiVersion: config.berth.dev/v1alpha1
kind: BerthConfiguration
# The lease must not be lost before it is time, however busy the machine is.
leaderElection: {namespace: berth-system, leaseDuration: 9s, renewDeadline: 6s, retryPeriod: 200ms, writeTimeout: 2s}
health: {bindAddress: %q}
metrics: {bindAddress: "0"}
logging: {level: debug}
`, health), 0o600))
	run, err := w.cluster.Run(t.Context(), cluster.Command{
		Name: name, Path: program, Args: []string{"--config", config, "--kubeconfig", kubeconfig}, Ports: []int{port},
		Ready: func(ctx context.Context) (bool, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
			if err != nil {
				return false, err
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return false, err
			}
			_ = response.Body.Close()
			return response.StatusCode == http.StatusOK, nil
		},
	})
	must(t, err)
	t.Cleanup(func() { _ = run.Stop() })
	return process{run}
}

// leads returns nil when the process says that it leads.
func (p process) leads(context.Context) error {
	log, err := os.ReadFile(p.LogPath())
	if err != nil {
		return err
	}
	if !strings.Contains(string(log), `"msg":"Leading"`) {
		return errors.New("it does not lead")
	}
	return nil
}

// failed returns nil when the process has ended by itself, as one that lost its lease must.
func (p process) failed(context.Context) error {
	switch end := p.Crashed(); {
	case end == nil:
		return errors.New("it runs on")
	case !strings.Contains(end.Error(), "exit status 1"):
		return end
	}
	return p.Stop() // a process that was stopped has not crashed
}
