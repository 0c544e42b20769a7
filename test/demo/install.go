package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers"
	"github.com/berth-dev/berth/pkg/render"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/demo/witness"
)

// The namespace and the service account in config/rbac; the process and its log are named after the account.
const (
	berthNamespace = "berth-system"
	controllerName = "berth-controller"
)

// Names in test/testdata/queues.yaml.
const (
	poolName  = "tpus"
	checkName = "berth"
	queueName = "research"
)

// startCluster starts everything that is not Berth.
func (d *demo) startCluster(ctx context.Context) error {
	c, err := cluster.Start(ctx, cluster.Options{Repository: d.repository, Log: lines{d}})
	if err != nil {
		return err
	}
	d.cluster = c
	scheme, err := controllers.NewScheme()
	if err != nil {
		return err
	}
	d.admin, err = client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	return err
}

// lines says what is written to it.
type lines struct{ *demo }

// Write is io.Writer.Write.
func (l lines) Write(text []byte) (int, error) {
	l.say("%s", text)
	return len(text), nil
}

// installBerth does what an administrator does, from the files that one installs.
func (d *demo) installBerth(ctx context.Context) error {
	for _, part := range []string{"config/crd", "config/rbac", "config/policy"} {
		if err := d.cluster.Apply(ctx, filepath.Join(d.repository, part)); err != nil {
			return err
		}
		d.say("applied %s", part)
	}
	if err := d.startController(ctx); err != nil {
		return err
	}
	for _, file := range []string{"test/testdata/kep4815-multihost.yaml", "test/testdata/queues.yaml"} {
		if err := d.cluster.Apply(ctx, filepath.Join(d.repository, file)); err != nil {
			return err
		}
		d.say("applied %s", file)
	}
	if err := d.cluster.AwaitNodes(ctx); err != nil {
		return err
	}
	if err := d.await(ctx, "the pool is fenced and the admission check active", func(*witness.Observation) error { return d.inForce(ctx) }); err != nil {
		return err
	}
	d.say("%s", render.PictureLegend)
	return nil
}

// startController builds Berth's program and runs it as its own service account, with the default configuration except
// for the ports: it must not listen beyond the loopback interface.
func (d *demo) startController(ctx context.Context) error {
	program := filepath.Join(d.cluster.Dir, controllerName)
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/berth-controller")
	build.Dir = d.repository
	// An interrupt lets go end its compilers; a kill would leave them behind.
	build.Cancel = func() error { return build.Process.Signal(os.Interrupt) }
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", controllerName, err, output)
	}
	account, err := d.cluster.ServiceAccountConfig(ctx, berthNamespace, controllerName)
	if err != nil {
		return err
	}
	kubeconfig, config := program+".kubeconfig", program+".yaml"
	if err := d.cluster.WriteKubeconfig(kubeconfig, account); err != nil {
		return err
	}
	health, err := d.cluster.FreePort()
	if err != nil {
		return err
	}
	metrics, err := d.cluster.FreePort()
	if err != nil {
		return err
	}
	content := fmt.Sprintf(`apiVersion: config.berth.dev/v1alpha1
kind: BerthConfiguration
health: {bindAddress: "127.0.0.1:%d"}
metrics: {bindAddress: "127.0.0.1:%d"}
`, health, metrics)
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		return err
	}
	process, err := d.cluster.Run(ctx, cluster.Command{
		Name:  controllerName,
		Path:  program,
		Args:  []string{"--config", config, "--kubeconfig", kubeconfig},
		Ports: []int{health, metrics},
		Ready: func(ctx context.Context) (bool, error) { return ready(ctx, health) },
		// As its Deployment gives it: it waits for writes under way and gives up the lease.
		StopGrace: 30 * time.Second,
	})
	if err != nil {
		return err
	}
	d.say("%s runs as process %d", controllerName, process.PID())
	return nil
}

func ready(ctx context.Context, port int) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", port), nil)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK, nil
}

// inForce returns nil when Berth has seen its fence refuse and Kueue may hand out quota.
func (d *demo) inForce(ctx context.Context) error {
	pool := &berth.AcceleratorPool{}
	check := &kueue.AdmissionCheck{}
	queue := &kueue.ClusterQueue{}
	for name, obj := range map[string]client.Object{poolName: pool, checkName: check, queueName: queue} {
		if err := d.admin.Get(ctx, client.ObjectKey{Name: name}, obj); err != nil {
			return err
		}
	}
	for _, kind := range []string{berth.PoolReady, berth.PoolFenced} {
		if !apimeta.IsStatusConditionTrue(pool.Status.Conditions, kind) {
			return fmt.Errorf("AcceleratorPool %s is not %s: %+v", poolName, kind, apimeta.FindStatusCondition(pool.Status.Conditions, kind))
		}
	}
	if !apimeta.IsStatusConditionTrue(check.Status.Conditions, kueue.AdmissionCheckActive) {
		return fmt.Errorf("AdmissionCheck %s is not active: %+v", checkName, check.Status.Conditions)
	}
	if !apimeta.IsStatusConditionTrue(queue.Status.Conditions, kueue.ClusterQueueActive) {
		return fmt.Errorf("ClusterQueue %s is not active: %+v", queueName, queue.Status.Conditions)
	}
	return nil
}
