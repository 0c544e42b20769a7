package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/test/cluster"
)

const pool = "../testdata/kep4815-multihost.yaml"

// queues give the namespace default a queue with all 16 shares of the pool.
const queues = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: tpu}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: tpu}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [berth.dev/shares]
    flavors:
    - name: tpu
      resources: [{name: berth.dev/shares, nominalQuota: 16}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: tpu, namespace: default}
spec: {clusterQueue: tpu}
`

// job is a gang of one: without Berth each pod would get a 4x4 of its own.
const job = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: tpu-4x4, namespace: default}
spec: {spec: {devices: {requests: [{name: tpu, exactly: {deviceClassName: tpu-4x4}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: default, labels: {kueue.x-k8s.io/queue-name: tpu}}
spec:
  parallelism: 2
  completions: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{name: tpu, resourceClaimTemplateName: tpu-4x4}]
      containers: [{name: train, image: train, resources: {claims: [{name: tpu}]}}]
`

func TestKueueChargesSharesAndJobRuns(t *testing.T) {
	ctx := t.Context()
	c := cluster.ForTest(t, cluster.Options{Audit: true})
	must(t, c.Apply(ctx, pool))
	must(t, c.AwaitNodes(ctx))
	must(t, c.ApplyYAML(ctx, queues))
	must(t, c.ApplyYAML(ctx, job))

	t.Log("the Job's pods run, each with a claim")
	eventually(t, func(ctx context.Context) (bool, error) { return runningPods(ctx, c.Client(), 2) })

	workload := onlyWorkload(t, c)
	if workload.Status.Admission == nil {
		t.Fatalf("the Workload is not admitted: %+v", workload.Status)
	}
	assignment := workload.Status.Admission.PodSetAssignments[0]
	if got := assignment.ResourceUsage["berth.dev/shares"]; got.Value() != 2 {
		t.Errorf("charged %v, want 2 berth.dev/shares", assignment.ResourceUsage)
	}
	if len(workload.Status.AdmissionChecks) != 0 {
		t.Errorf("unexpected admission checks: %+v", workload.Status.AdmissionChecks)
	}
	claims, err := c.Client().ResourceV1().ResourceClaims("default").List(ctx, metav1.ListOptions{})
	must(t, err)
	devices := map[string]bool{}
	for _, claim := range claims.Items {
		if claim.Status.Allocation != nil {
			devices[claim.Status.Allocation.Devices.Results[0].Device] = true
		}
	}
	if len(devices) != 2 {
		t.Errorf("allocated %v, want two devices", devices)
	}

	t.Log("the pods stay until they are asked to complete")
	marked, err := c.CompletePods(ctx, "default", batchv1.JobNameLabel+"=train")
	must(t, err)
	if marked != 2 {
		t.Errorf("marked %d pods, want 2", marked)
	}
	eventually(t, func(ctx context.Context) (bool, error) {
		job, err := c.Client().BatchV1().Jobs("default").Get(ctx, "train", metav1.GetOptions{})
		return err == nil && job.Status.Succeeded == 2, err
	})

	t.Log("the audit log names who wrote the claims' status")
	writes, err := c.Writes(ctx, func(w cluster.Write) bool { return w.Resource == "resourceclaims/status" && w.Code == 200 })
	must(t, err)
	if len(writes) == 0 {
		t.Error("no write of a claim's status was recorded")
	}
	if users := users(writes); !users["system:kube-scheduler"] {
		t.Errorf("claims were written by %v, want system:kube-scheduler among them", users)
	}

	t.Log("the older API version is served through Kueue's conversion webhook")
	old := schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "workloads"}
	list, err := c.Dynamic().Resource(old).Namespace("default").List(ctx, metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].GetAPIVersion() != "kueue.x-k8s.io/v1beta1" {
		t.Errorf("got %d workloads through v1beta1", len(list.Items))
	}
}

func TestStoppedComponentWorksAgainAfterStart(t *testing.T) {
	ctx := t.Context()
	c := cluster.ForTest(t, cluster.Options{Without: cluster.OnlyKubernetes})
	manager := c.Process(cluster.ControllerManager)
	first := manager.PID()

	must(t, manager.Stop())
	if manager.PID() != 0 || cluster.StartTime(first) != "" {
		t.Fatalf("process %d still runs", first)
	}
	_, err := c.Client().CoreV1().Namespaces().Create(ctx, namespace("late"), metav1.CreateOptions{})
	must(t, err)
	must(t, manager.Start(ctx))
	if manager.PID() == first {
		t.Fatal("same process as before")
	}
	must(t, c.CreateNamespace(ctx, "late", nil)) // waits for the service account that only the manager makes

	t.Log("the API server keeps its port and its data")
	must(t, c.Process(cluster.APIServer).Restart(ctx))
	_, err = c.Client().CoreV1().Namespaces().Get(ctx, "late", metav1.GetOptions{})
	must(t, err)

	t.Log("a paused component answers nobody until it is resumed")
	must(t, manager.Pause())
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if ready, _ := manager.Ready(short); ready {
		t.Error("a paused process answered")
	}
	must(t, manager.Resume())
	eventually(t, manager.Ready)

	t.Log("a component that ends by itself is noticed")
	scheduler := c.Process(cluster.Scheduler)
	must(t, c.Crashed())
	must(t, syscall.Kill(scheduler.PID(), syscall.SIGKILL))
	eventually(t, func(context.Context) (bool, error) { return c.Crashed() != nil, nil })
	if got := c.Crashed().Error(); got != "kube-scheduler: ended by itself: signal: killed" {
		t.Errorf("it is said to have %s", got)
	}
	must(t, scheduler.Stop())
	must(t, scheduler.Start(ctx))
	must(t, c.Crashed())

	t.Log("one that was killed on purpose has not")
	must(t, scheduler.Kill())
	must(t, c.Crashed())
	must(t, scheduler.Start(ctx))
}

func TestBrokenFlagFailsWithLogTail(t *testing.T) {
	dir := t.TempDir()
	_, err := cluster.Start(t.Context(), cluster.Options{
		Dir:     dir,
		Without: cluster.OnlyAPIServer,
		Args:    map[string][]string{cluster.APIServer: {"--no-such-flag"}},
	})
	if err == nil {
		t.Fatal("started with a flag that does not exist")
	}
	for _, want := range []string{"kube-apiserver: exited before it was ready: exit status 1", "unknown flag: --no-such-flag", dir} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestAccessIsRealRBAC(t *testing.T) {
	ctx := t.Context()
	c := cluster.ForTest(t, cluster.Options{Without: cluster.OnlyAPIServer})
	must(t, c.CreateNamespace(ctx, "team", nil))
	must(t, c.ApplyYAML(ctx, `
apiVersion: v1
kind: List
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata: {name: viewer, namespace: team}
  rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: viewers, namespace: team}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: viewer}
  subjects:
  - {kind: ServiceAccount, name: robot, namespace: team}
  - {kind: User, name: alice, apiGroup: rbac.authorization.k8s.io}
`))
	robot, err := c.ServiceAccountConfig(ctx, "team", "robot")
	must(t, err)
	for name, cfg := range map[string]kubernetes.Interface{
		"system:serviceaccount:team:robot": kubernetes.NewForConfigOrDie(robot),
		"alice":                            kubernetes.NewForConfigOrDie(c.RESTConfigFor("alice")),
	} {
		// RBAC reaches the authorizer through informers, a moment after it was written.
		eventually(t, func(ctx context.Context) (bool, error) {
			_, err := cfg.CoreV1().ConfigMaps("team").List(ctx, metav1.ListOptions{})
			return err == nil, err
		})
		_, err := cfg.CoreV1().ConfigMaps("team").Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "no"},
		}, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("User %q cannot create", name)) {
			t.Errorf("create as %s: %v, want it to be forbidden under that name", name, err)
		}
	}
}

func TestSilencedNodeIsNotReadyUntilRevived(t *testing.T) {
	ctx := t.Context()
	c := cluster.ForTest(t, cluster.Options{
		Without:                []string{cluster.Kueue},
		NodeMonitorGracePeriod: 20 * time.Second,
	})
	must(t, c.Apply(ctx, pool))
	must(t, c.AwaitNodes(ctx))
	must(t, c.SilenceNode(ctx, "node-3"))
	eventually(t, func(ctx context.Context) (bool, error) {
		unready, err := unreadyNodes(ctx, c.Client())
		return len(unready) == 1 && unready[0] == "node-3", err
	})
	must(t, c.ReviveNode(ctx, "node-3"))
	must(t, c.AwaitNodes(ctx))
}

func unreadyNodes(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, node := range nodes.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				names = append(names, node.Name)
			}
		}
	}
	return names, nil
}

func onlyWorkload(t *testing.T, c *cluster.Cluster) *kueue.Workload {
	t.Helper()
	list, err := c.Dynamic().Resource(kueue.GroupVersion.WithResource("workloads")).Namespace("default").
		List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 1 {
		t.Fatalf("%d workloads, want 1", len(list.Items))
	}
	workload := &kueue.Workload{}
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[0].Object, workload))
	return workload
}

func runningPods(ctx context.Context, client kubernetes.Interface, want int) (bool, error) {
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	running := 0
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return running == want, nil
}

func users(writes []cluster.Write) map[string]bool {
	users := map[string]bool{}
	for _, write := range writes {
		users[write.User] = true
	}
	return users
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func eventually(t *testing.T, check func(context.Context) (bool, error)) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			var done bool
			done, last = check(ctx)
			return done && last == nil, nil
		})
	if err != nil {
		t.Fatalf("%v; last: %v", err, last)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
