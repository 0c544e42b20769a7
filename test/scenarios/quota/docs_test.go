package quota

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	"sigs.k8s.io/yaml"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// TestDocumentedSetUp applies the YAML of docs/quota.md as it stands there to a Kueue that is configured as it stands there.
// A large gang of high priority gets the quota and the slice of a small one.
func TestDocumentedSetUp(t *testing.T) {
	d := document(t)
	var config configapi.Configuration
	if err := yaml.UnmarshalStrict([]byte(d.block("kind: Configuration")), &config); err != nil {
		t.Fatal(err)
	}
	if !config.FeatureGates["DynamicResourceAllocation"] {
		t.Error("the documented configuration does not turn the gate on")
	}
	s := d.stage(t, cluster.KueueOptions{
		DeviceClasses: map[string][]string{}, FeatureGates: config.FeatureGates,
		Configure: func(c *configapi.Configuration) { c.Resources = config.Resources },
	}, "kind: AcceleratorPool", "mode: Physical")
	f := &berth.CapacityFold{ObjectMeta: named("tpu")}
	s.Get(f)
	s.awaitQuota(f, 16)
	for name, value := range map[string]int32{"low": 1, "high": 2} {
		s.Create(&kueue.WorkloadPriorityClass{ObjectMeta: named(name), Value: value})
	}
	gang := func(name, class string, pods int32, priority string) *batchv1.Job {
		return s.Submit(scene.Gang(name, class, pods, func(j *batchv1.Job) {
			j.Labels[kueueconstants.QueueLabel] = "research"
			j.Labels[kueueconstants.WorkloadPriorityClassLabel] = priority
		}))
	}
	small := gang("small", "tpu-4x4", 4, "low")
	s.AwaitSeated(small)
	large := gang("large", "tpu-8x8", 16, "high")
	s.AwaitSeated(large)
	s.awaitInsufficient(small)
	s.charged(large, shares, 16)
	s.Finish(large)
	s.AwaitSeated(small)
	s.cordon("node-15", true)
	s.awaitQuota(f, 12)
	s.Finish(small)
	s.AwaitNoTrace()
}

// TestDocumentedSetUpWithoutTheGate: where Kueue does not charge for claims, pods are counted.
func TestDocumentedSetUpWithoutTheGate(t *testing.T) {
	d := document(t)
	s := d.stage(t, cluster.KueueOptions{
		DeviceClasses: map[string][]string{}, FeatureGates: map[string]bool{"DynamicResourceAllocation": false},
		Configure: func(c *configapi.Configuration) {
			c.Resources = &configapi.Resources{ExcludeResourcePrefixes: []string{"cpu", "memory"}}
		},
	}, "kind: AcceleratorPool", "resource: pods")
	target := berth.FoldTarget{Kind: berth.FoldCohort, Name: "tpu"}
	is := func(want int64) {
		t.Helper()
		s.Eventually("quota of pods", func(ctx context.Context) error {
			n, err := s.quota(ctx, target, "tpu-v5e", "pods")
			if err == nil && n != want {
				err = fmt.Errorf("it is %d, want %d", n, want)
			}
			return err
		})
	}
	is(16)
	s.cordon("node-15", true)
	is(12)
	job := s.Submit(scene.Gang("gang", "tpu-4x4", 4, func(j *batchv1.Job) { j.Labels[kueueconstants.QueueLabel] = "research" }))
	s.AwaitSeated(job)
	s.charged(job, "pods", 4)
	s.Finish(job)
	s.AwaitNoTrace()
}

// charged fails the test unless Kueue charges a Job as much.
func (s *stage) charged(job *batchv1.Job, resource corev1.ResourceName, want int64) {
	s.Helper()
	wl, err := s.WorkloadOf(s.Context(), job)
	if err != nil {
		s.Fatal(err)
	}
	if wl.Status.Admission == nil {
		s.Fatalf("%s is not admitted", job.Name)
	}
	if usage := wl.Status.Admission.PodSetAssignments[0].ResourceUsage[resource]; usage.Value() != want {
		s.Errorf("%s is charged %s %s, want %d", job.Name, usage.String(), resource, want)
	}
}

// quotaDoc is docs/quota.md.
type quotaDoc struct {
	testing.TB
	root   string
	blocks []string
}

func document(t *testing.T) *quotaDoc {
	t.Helper()
	root, err := cluster.FindRepository(".")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "docs/quota.md"))
	if err != nil {
		t.Fatal(err)
	}
	d := &quotaDoc{TB: t, root: root}
	for _, part := range strings.Split(string(raw), "\n```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```\n")
		d.blocks = append(d.blocks, block)
	}
	return d
}

// block is the one YAML block with that text.
func (d *quotaDoc) block(with string) string {
	d.Helper()
	var found []string
	for _, b := range d.blocks {
		if strings.Contains(b, with) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		d.Fatalf("%d blocks of docs/quota.md have %q", len(found), with)
	}
	return found[0]
}

// stage is a cluster of its own with the KEP pool and what the blocks say, in the namespace default.
func (d *quotaDoc) stage(t *testing.T, kueueOptions cluster.KueueOptions, blocks ...string) *stage {
	t.Helper()
	c := cluster.ForTest(t, cluster.Options{Audit: true, Kueue: kueueOptions})
	scene.Install(t, c)
	s := &stage{&scene.Scene{TB: t, Cluster: c, Client: scene.Admin(t, c), Namespace: "default", Watcher: scene.Watch(t, c)}}
	if err := c.Apply(t.Context(), filepath.Join(d.root, "test/testdata/kep4815-multihost.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, with := range blocks {
		if err := c.ApplyYAML(t.Context(), d.block(with)); err != nil {
			t.Fatal(err)
		}
	}
	for _, class := range []string{"tpu-4x4", "tpu-8x8"} {
		s.Create(s.Template(class))
	}
	s.begin()
	return s
}
