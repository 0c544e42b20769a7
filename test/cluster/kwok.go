package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// completeAnnotation on a pod asks KWOK to let it succeed.
const completeAnnotation = "kwok.berth.dev/complete"

func (c *Cluster) startKWOK(ctx context.Context) error {
	mod, err := pinned(ctx, componentSource(c.options.Repository, KWOK), "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	// The flow schema exempts KWOK from the API server's fair queuing: kubelets of a real cluster do not share one seat.
	rbac := filepath.Join(mod.dir, "kustomize", "rbac")
	if err := c.Apply(ctx, rbac); err != nil {
		return fmt.Errorf("%s: %w", KWOK, err)
	}
	stages, err := c.stages(filepath.Join(mod.dir, "kustomize", "stage"))
	if err != nil {
		return fmt.Errorf("%s: %w", KWOK, err)
	}
	content, err := encode(stages...)
	if err != nil {
		return err
	}
	if err := c.write("kwok.yaml", content); err != nil {
		return err
	}
	port, err := c.FreePort()
	if err != nil {
		return err
	}
	kubeconfig, err := c.kubeconfigOf(KWOK)
	if err != nil {
		return err
	}
	_, err = c.component(ctx, KWOK, []int{port}, httpOK("http://"+address(port)+"/healthz", nil, ""),
		"--config="+c.path("kwok.yaml"),
		"--kubeconfig="+kubeconfig,
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		"--server-address="+address(port),
		// Asked for its own address it would look at the machine's interfaces.
		"--node-ip=127.0.0.1",
		"--node-lease-duration-seconds="+strconv.Itoa(max(1, int(c.options.NodeMonitorGracePeriod.Seconds()))),
	)
	return err
}

// stages are KWOK's own fast ones from its module, with pod completion as the options want it.
func (c *Cluster) stages(dir string) ([]*unstructured.Unstructured, error) {
	var stages []*unstructured.Unstructured
	for _, path := range append([]string{
		filepath.Join(dir, "node", "fast"),
		filepath.Join(dir, "node", "heartbeat-with-lease"),
		filepath.Join(dir, "pod", "fast"),
	}, c.options.KWOK.Stages...) {
		read, err := readObjects(path)
		if err != nil {
			return nil, err
		}
		stages = append(stages, read...)
	}
	if c.options.KWOK.Completion == CompleteAtOnce {
		return stages, nil
	}
	for _, stage := range stages {
		if stage.GetName() != "pod-complete" {
			continue
		}
		fields := []string{"spec", "selector", "matchExpressions"}
		terms, found, err := unstructured.NestedSlice(stage.Object, fields...)
		if err != nil || !found {
			return nil, fmt.Errorf("stage %s has no selector to add to: %w", stage.GetName(), err)
		}
		terms = append(terms, map[string]any{
			"key": fmt.Sprintf(".metadata.annotations[%q]", completeAnnotation), "operator": "Exists",
		})
		if err := unstructured.SetNestedSlice(stage.Object, terms, fields...); err != nil {
			return nil, err
		}
		return stages, nil
	}
	return nil, fmt.Errorf("no stage pod-complete in %s", dir)
}
