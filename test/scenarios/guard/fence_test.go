package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/faults"
	"github.com/berth-dev/berth/test/scene"
)

// fencedBy is how the refusal of an allocation goes on after the device and the claim.
func fencedBy(pool string) string {
	return ": AcceleratorPool " + pool + " leaves its devices to Berth. Submit the job to a Kueue queue that has Berth's" +
		" admission check, or use a DeviceClass that does not select this pool."
}

// bearing creates a template of a class whose claims bear every device taint, that of the fence included.
func (s *stage) bearing(class string) *resourcev1.ResourceClaimTemplate {
	s.Helper()
	t := s.Template(class)
	t.Name += "-bearing"
	t.Spec.Spec.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	s.Create(t)
	// Every fence names the templates that would run against it.
	s.Cleanup(func() { _ = s.Client.Delete(context.Background(), t) })
	return t
}

// secondScheduler runs another kube-scheduler under the name second and a user of its own with the rights of the first.
// It reaches the API server by the configuration that through makes of its own.
func (s *stage) secondScheduler(through func(*rest.Config) *rest.Config) *cluster.Process {
	s.Helper()
	const name = "second-scheduler"
	for _, role := range []string{"system:kube-scheduler", "system:volume-scheduler"} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		}
		s.Create(binding)
		s.Cleanup(func() { _ = s.Client.Delete(context.Background(), binding) })
	}
	root, err := cluster.FindRepository(".")
	s.must(err, "finding the repository")
	binaries, err := cluster.Build(s.Context(), root, io.Discard, cluster.Scheduler)
	s.must(err, "building kube-scheduler")
	dir := s.TempDir()
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "config.yaml")
	s.must(s.Cluster.WriteKubeconfig(kubeconfig, through(s.Cluster.RESTConfigFor(name))), "writing a kubeconfig")
	s.must(os.WriteFile(config, fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 1000, burst: 2000}
profiles: [{schedulerName: %q}]
`, kubeconfig, s.second()), 0o600), "writing a configuration")
	process, err := s.Cluster.Run(s.Context(), cluster.Command{
		Name: name + "-" + s.Namespace, Path: binaries[cluster.Scheduler],
		Args: []string{"--config=" + config, "--secure-port=0"},
	})
	s.must(err, "starting a second scheduler")
	s.Cleanup(func() { _ = process.Stop() })
	return process
}

// second is what the stage's second scheduler is called. Pods of other stages, whose namespaces may still be ending, are not
// its business.
func (s *stage) second() string { return "second-" + s.Namespace }

func (s *stage) bySecond(p *corev1.Pod) { p.Spec.SchedulerName = s.second() }

// TestScenario34_OthersAllocateFromFencedPool: whoever decides past Berth meets the fence when he writes, and the pool is
// whole for the gang that comes after.
func TestScenario34_OthersAllocateFromFencedPool(t *testing.T) {
	s := begin(t)
	s.run()
	s.awaitFenced(scene.Pool, "writes by others are refused")
	alice := s.editor("alice")
	template := s.bearing("tpu-2x2")
	s.secondScheduler(func(cfg *rest.Config) *rest.Config { return cfg })

	plain := pod(s.Namespace, "plain", using(claimFrom("tpu-2x2")))
	bearing := pod(s.Namespace, "bearing", using(claimFrom(template.Name)))
	second := pod(s.Namespace, "second", using(claimFrom(template.Name)), s.bySecond)
	extended := pod(s.Namespace, "extended", func(p *corev1.Pod) {
		one := corev1.ResourceList{corev1.ResourceName("deviceclass.resource.kubernetes.io/tpu-2x2"): resource.MustParse("1")}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	})
	pods := []*corev1.Pod{plain, bearing, second, extended}
	for _, p := range pods {
		s.must(alice.Create(t.Context(), p), "creating pod "+p.Name)
	}
	for p, said := range map[*corev1.Pod]string{
		plain:    "cannot allocate all claims",
		extended: "cannot allocate all claims",
		bearing:  fencedBy(scene.Pool),
		second:   fencedBy(scene.Pool),
	} {
		s.Eventually("the refusal of pod "+p.Name, func(ctx context.Context) error {
			return s.anyEvent(ctx, p, "FailedScheduling", said)
		})
	}

	own := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "own"}, Spec: s.Template("tpu-4x4").Spec.Spec,
	}
	s.must(alice.Create(t.Context(), own), "creating a claim")
	own.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "slice", Driver: "tpu.example.com", Pool: "pod-a", Device: "tpu-4x4-00"}},
	}}
	denied := "device tpu-4x4-00 of pool pod-a (driver tpu.example.com) cannot be allocated to ResourceClaim " + s.Namespace + "/own"
	for _, user := range []string{"system:kube-scheduler", "second-scheduler"} {
		s.denied(s.clientAs(user).Status().Update(t.Context(), own.DeepCopy()), policy.ClaimStatus, denied+fencedBy(scene.Pool))
	}
	s.denied(s.Client.Status().Update(t.Context(), own.DeepCopy()), policy.ClaimStatus, denied+fencedBy(scene.Pool))

	job := s.Submit(scene.Gang("train", "tpu-8x8", 16))
	s.AwaitSeated(job)
	s.must(s.unallocated(t.Context()), "looking for claims of others")
	s.Finish(job)
	s.AwaitNoTrace()
	for _, p := range pods {
		s.Get(p)
		if p.Spec.NodeName != "" {
			t.Errorf("pod %s was bound to %s", p.Name, p.Spec.NodeName)
		}
	}
}

// unallocated returns nil when only Berth's claims are allocated.
func (s *stage) unallocated(ctx context.Context) error {
	var list resourcev1.ResourceClaimList
	if err := s.Client.List(ctx, &list, client.InNamespace(s.Namespace)); err != nil {
		return err
	}
	for _, c := range list.Items {
		if c.Status.Allocation != nil && !strings.HasPrefix(c.Name, berth.ClaimNamePrefix) {
			return fmt.Errorf("claim %s is allocated: %v", c.Name, c.Status.Allocation.Devices.Results)
		}
	}
	return nil
}

// awaitFenced waits until an AcceleratorPool says what stands and who is inside already.
func (s *stage) awaitFenced(pool, message string) {
	s.Helper()
	s.Eventually("the fence of "+pool, func(ctx context.Context) error {
		p := &berth.AcceleratorPool{}
		if err := s.Client.Get(ctx, client.ObjectKey{Name: pool}, p); err != nil {
			return err
		}
		for _, c := range p.Status.Conditions {
			if c.Type == berth.PoolFenced && c.Status == metav1.ConditionTrue && c.Message == message {
				return nil
			}
		}
		return fmt.Errorf("it should say %q and says %v", message, p.Status.Conditions)
	})
}

// late is hardware that nobody manages yet: four hosts, offered one by one and together.
const late = `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: late-counters}
spec:
  driver: late.example.com
  pool: {name: late, generation: 1, resourceSliceCount: 2}
  allNodes: true
  sharedCounters:
  - name: hosts
    counters: {h0: {value: "1"}, h1: {value: "1"}, h2: {value: "1"}, h3: {value: "1"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: late-devices}
spec:
  driver: late.example.com
  pool: {name: late, generation: 1, resourceSliceCount: 2}
  perDeviceNodeSelection: true
  devices:
  - {name: host-0, attributes: {size: {string: one}}, nodeName: node-0, consumesCounters: [{counterSet: hosts, counters: {h0: {value: "1"}}}]}
  - {name: host-1, attributes: {size: {string: one}}, nodeName: node-1, consumesCounters: [{counterSet: hosts, counters: {h1: {value: "1"}}}]}
  - {name: host-2, attributes: {size: {string: one}}, nodeName: node-2, consumesCounters: [{counterSet: hosts, counters: {h2: {value: "1"}}}]}
  - {name: host-3, attributes: {size: {string: one}}, nodeName: node-3, consumesCounters: [{counterSet: hosts, counters: {h3: {value: "1"}}}]}
  - name: all
    attributes: {size: {string: all}}
    consumesCounters: [{counterSet: hosts, counters: {h0: {value: "1"}, h1: {value: "1"}, h2: {value: "1"}, h3: {value: "1"}}}]
    nodeSelector:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-0, node-1, node-2, node-3]}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: late-one}
spec: {selectors: [{cel: {expression: 'device.driver == "late.example.com" && device.attributes["late.example.com"].size == "one"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: late-all}
spec: {selectors: [{cel: {expression: 'device.driver == "late.example.com" && device.attributes["late.example.com"].size == "all"'}}]}
`

// publishLate publishes the late hardware for the time of the test and makes a template for each of its classes.
func (s *stage) publishLate() {
	s.Helper()
	s.must(s.Cluster.ApplyYAML(s.Context(), late), "publishing hardware")
	s.Cleanup(func() {
		ctx := context.Background()
		for _, obj := range []client.Object{
			&berth.AcceleratorPool{ObjectMeta: metav1.ObjectMeta{Name: "late"}},
			&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "late-devices"}},
			&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "late-counters"}},
			&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "late-one"}},
			&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "late-all"}},
		} {
			if err := client.IgnoreNotFound(s.Client.Delete(ctx, obj)); err != nil {
				s.Errorf("taking %s away: %v", obj.GetName(), err)
			}
		}
	})
	s.Create(s.Template("late-one"))
	s.Create(s.Template("late-all"))
}

// fenceLate has Berth take the late hardware over.
func (s *stage) fenceLate() {
	s.Helper()
	s.Create(&berth.AcceleratorPool{
		ObjectMeta: metav1.ObjectMeta{Name: "late"}, Spec: berth.AcceleratorPoolSpec{Driver: "late.example.com"},
	})
}

// TestScenario34_DecisionInFlight: kube-scheduler has decided and is stopped with the write on its way when the fence goes
// up. Berth gives the hardware to a gang; the write comes in afterwards and is refused.
func TestScenario34_DecisionInFlight(t *testing.T) {
	s := begin(t)
	s.run()
	s.publishLate()
	proxy := faults.NewProxy(t, s.Cluster.RESTConfig())
	scheduler := s.secondScheduler(proxy.Config)
	// With SIGSTOP: a scheduler that went on would hear of the fence and give its decision up.
	hold := proxy.HoldNth(1, scheduler.PID(), func(w faults.Write) bool {
		return w.Resource == "resourceclaims" && w.Subresource == "status"
	})
	// It bears the fence's taint: only the write itself can be stopped.
	template := s.bearing("late-one")
	early := pod(s.Namespace, "early", using(claimFrom(template.Name)), s.bySecond)
	s.Create(early)
	select {
	case <-hold.Reached():
		s.must(hold.Err(), "holding the write")
	case <-t.Context().Done():
		t.Fatal("the scheduler writes no allocation")
	}

	s.fenceLate()
	s.awaitFenced("late", "writes by others are refused; templates that tolerate the scheduler's taint and will fail at the policy"+
		" instead: "+s.Namespace+"/"+template.Name)
	job := s.Submit(scene.Gang("train", "late-all", 4))
	s.AwaitSeated(job)
	s.AwaitReserved(job, "True Reserved: all (late) on node-0, node-1, node-2, node-3")

	hold.Release()
	<-hold.Done()
	s.Eventually("the refusal", func(ctx context.Context) error {
		return s.anyEvent(ctx, early, "FailedScheduling", fencedBy("late"))
	})
	s.must(s.unallocated(t.Context()), "looking for claims of others")
	s.must(s.Seated(t.Context(), job), "looking after the gang")
	s.Finish(job)
	s.AwaitNoTrace()
	s.Get(early)
	if early.Spec.NodeName != "" {
		t.Errorf("the pod was bound to %s", early.Spec.NodeName)
	}
}

// TestScenario34_AllocatedBeforeTheFence: what another scheduler wrote before the fence is counted, named and left alone;
// the gang gets the hardware when it is given back.
func TestScenario34_AllocatedBeforeTheFence(t *testing.T) {
	s := begin(t)
	s.run()
	s.publishLate()
	early, claim := s.allocatedEarly()
	s.fenceLate()
	s.awaitFenced("late", "writes by others are refused; claims of others hold devices here from before: "+s.Namespace+"/"+claim.Name)
	job := s.Submit(scene.Gang("train", "late-all", 4))
	s.AwaitReserved(job, "False NoFreeSlice: no late-all is free: 1 of 1 is held by "+s.Namespace+"/"+claim.Name)
	s.must(s.Client.Delete(t.Context(), early), "deleting the stranger's pod")
	s.AwaitSeated(job)
	s.Finish(job)
	s.AwaitNoTrace()
}

// allocatedEarly has kube-scheduler allocate one of the late hosts to an ordinary pod.
func (s *stage) allocatedEarly() (*corev1.Pod, *resourcev1.ResourceClaim) {
	s.Helper()
	early := pod(s.Namespace, "early", using(claimFrom("late-one")))
	s.Create(early)
	var claim *resourcev1.ResourceClaim
	s.Eventually("the allocation of a stranger", func(ctx context.Context) error {
		var list resourcev1.ResourceClaimList
		if err := s.Client.List(ctx, &list, client.InNamespace(s.Namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Status.Allocation != nil {
				claim = &list.Items[i]
				return nil
			}
		}
		return errors.New("nothing is allocated")
	})
	return early, claim
}

// TestScenario34_AllocatedUnseenBeforeTheFence: another scheduler has written before the fence and Berth's watch has not
// told of it yet. Berth finds that out before it gives anything away.
func TestScenario34_AllocatedUnseenBeforeTheFence(t *testing.T) {
	s := begin(t)
	lag := faults.NewLag()
	t.Cleanup(lag.Release)
	s.run(scene.RunOptions{Change: func(o *controllers.Options) { o.REST = lag.Config(o.REST) }})
	s.publishLate()
	// A gang that has come and gone shows that this process knows the claims; the pool's condition may be of the last one.
	first := s.Submit(scene.Gang("first", "tpu-2x2", 1))
	s.AwaitSeated(first)
	s.Finish(first)
	s.AwaitNoTrace()
	lag.Hold("resourceclaims")
	early, claim := s.allocatedEarly()
	s.fenceLate()
	job := s.Submit(scene.Gang("train", "late-all", 4))
	s.AwaitReserved(job, "False NotFenced: the fence of AcceleratorPool late is not in force yet")
	lag.Release()
	s.AwaitReserved(job, "False NoFreeSlice: no late-all is free: 1 of 1 is held by "+s.Namespace+"/"+claim.Name)
	s.must(s.Client.Delete(t.Context(), early), "deleting the stranger's pod")
	s.AwaitSeated(job)
	s.Finish(job)
	s.AwaitNoTrace()
}
