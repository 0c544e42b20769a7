package policy_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/test/cluster"
)

// The policies among the real controllers: a gang of four on one pinned 4x4, then kube-scheduler on its own, then the end
// of the namespace.
func TestPoliciesAmongRealControllers(t *testing.T) {
	ctx := t.Context()
	c := cluster.ForTest(t, cluster.Options{Without: []string{cluster.Kueue}, Audit: true})
	must(t, c.Apply(ctx, "../../test/testdata/kep4815-multihost.yaml"))
	w, err := install(ctx, c)
	must(t, err)
	must(t, c.AwaitNodes(ctx))
	ns := w.namespace(t)
	must(t, w.ApplyYAML(ctx, `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: tpu-4x4, namespace: `+ns+`}
spec: {spec: {devices: {requests: [{name: tpu, exactly: {deviceClassName: tpu-4x4}}]}}}
`))

	t.Run("no policy has type warnings", func(t *testing.T) {
		eventually(t, "kube-controller-manager checks the policies", func(ctx context.Context) (bool, error) {
			var list admissionv1.ValidatingAdmissionPolicyList
			if err := w.admin.List(ctx, &list); err != nil {
				return false, err
			}
			for _, p := range list.Items {
				if p.Status.TypeChecking == nil {
					return false, nil
				}
				for _, warning := range p.Status.TypeChecking.ExpressionWarnings {
					t.Errorf("%s: %s: %s", p.Name, warning.FieldRef, warning.Warning)
				}
			}
			return true, nil
		})
	})

	// A write that was decided before the fence.
	inFlight := claim(ns, "in-flight")
	w.create(t, admin, inFlight)
	allocated("tpu.example.com", "pod-a")(inFlight)
	w.pools(t, acceleratorPool("pod-a", "tpu.example.com", "", &v1alpha1.PoolSelector{Names: []string{"pod-a"}}))
	t.Run("a decision in flight is refused", func(t *testing.T) {
		expect(t, w.as(t, scheduler).Status().Update(ctx, inFlight), policy.ClaimStatus,
			leavesToBerth("slice-4x4-a", "pod-a", "tpu.example.com", ns+"/in-flight", "pod-a"))
	})

	hosts := []string{"node-0", "node-1", "node-4", "node-5"}
	hostOf := func(p corev1.Pod) string {
		rank, err := strconv.Atoi(p.Labels[rankLabel])
		must(t, err)
		return hosts[rank]
	}
	pin := claim(ns, "berth.gang-1-tpu-0", pinned("tpu.example.com", "pod-a"), func(c *resourcev1.ResourceClaim) {
		c.Status.Allocation.Devices.Results[0].Device = "tpu-4x4-00"
		c.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
				Values: hosts}},
		}}}
	})
	w.create(t, berth, pin)
	train := job(ns, "train")
	w.create(t, admin, train)
	must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := w.admin.Get(ctx, client.ObjectKeyFromObject(train), train); err != nil {
			return err
		}
		admitted(train)
		train.Spec.Suspend = ptr.To(false)
		return w.admin.Update(ctx, train) // The Job's controller writes its status meanwhile.
	}))

	var pods corev1.PodList
	t.Run("the Job's pods are created pinned and gated", func(t *testing.T) {
		eventually(t, "four pods", func(ctx context.Context) (bool, error) {
			err := w.admin.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{batchv1.JobNameLabel: "train"})
			return len(pods.Items) == 4, err
		})
		for _, p := range pods.Items {
			claim, host := p.Spec.ResourceClaims[0], hostOf(p)
			if claim.ResourceClaimName == nil || *claim.ResourceClaimName != pin.Name || claim.ResourceClaimTemplateName != nil ||
				p.Spec.NodeSelector[corev1.LabelHostname] != host || len(p.Spec.SchedulingGates) != 1 {
				t.Errorf("pod %s: %+v", p.Name, p.Spec)
			}
		}
	})
	t.Run("seated by Berth they run on their hosts", func(t *testing.T) {
		must(t, w.berth.Get(ctx, client.ObjectKeyFromObject(pin), pin))
		for _, p := range pods.Items {
			pin.Status.ReservedFor = append(pin.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: p.UID})
		}
		must(t, w.berth.Status().Update(ctx, pin))
		for i := range pods.Items {
			must(t, w.berth.Patch(ctx, &pods.Items[i], client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"schedulingGates":null}}`))))
		}
		eventually(t, "all run", func(ctx context.Context) (bool, error) {
			if err := w.admin.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{batchv1.JobNameLabel: "train"}); err != nil {
				return false, err
			}
			for _, p := range pods.Items {
				if p.Status.Phase != corev1.PodRunning {
					return false, nil
				}
			}
			return true, nil
		})
		for _, p := range pods.Items {
			if p.Spec.NodeName != hostOf(p) {
				t.Errorf("rank %s on %s", p.Labels[rankLabel], p.Spec.NodeName)
			}
		}
	})

	// Scenario 34.
	t.Run("kube-scheduler gets nothing from a fenced pool", func(t *testing.T) {
		class := &resourcev1.DeviceClass{}
		must(t, w.admin.Get(ctx, client.ObjectKey{Name: "tpu-2x2"}, class))
		class.Spec.ExtendedResourceName = ptr.To("example.com/tpu")
		must(t, w.admin.Update(ctx, class))
		w.create(t, admin, pod(ns, "unmanaged", template("tpu")))
		w.create(t, admin, pod(ns, "extended", func(p *corev1.Pod) {
			one := corev1.ResourceList{"example.com/tpu": resource.MustParse("1")}
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
		}))
		for _, name := range []string{"unmanaged", "extended"} {
			eventually(t, name+" is told why it waits", func(ctx context.Context) (bool, error) {
				events, err := w.Client().CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
				if err != nil {
					return false, err
				}
				var said []string
				for _, e := range events.Items {
					if strings.Contains(e.Message, "AcceleratorPool pod-a leaves its devices to Berth") {
						t.Logf("%s: %s", name, e.Message)
						return true, nil
					}
					said = append(said, e.Message)
				}
				return false, fmt.Errorf("events: %q", said)
			})
		}
		var claims resourcev1.ResourceClaimList
		must(t, w.admin.List(ctx, &claims, client.InNamespace(ns)))
		for _, c := range claims.Items {
			if c.Name != pin.Name && c.Status.Allocation != nil {
				t.Errorf("%s is allocated", c.Name)
			}
		}
	})

	t.Run("with device taints it does not even try", func(t *testing.T) {
		var fence v1alpha1.AcceleratorPool
		must(t, w.admin.Get(ctx, client.ObjectKey{Name: "pod-a"}, &fence))
		for _, rule := range policy.FenceRules(&fence, nil) {
			w.create(t, berth, rule)
		}
		w.create(t, admin, pod(ns, "tainted", template("tpu")))
		eventually(t, "kube-scheduler says that it cannot allocate", func(ctx context.Context) (bool, error) {
			p := &corev1.Pod{}
			if err := w.admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: "tainted"}, p); err != nil {
				return false, err
			}
			for _, cond := range p.Status.Conditions {
				if cond.Type == corev1.PodScheduled && strings.Contains(cond.Message, "cannot allocate all claims") {
					return true, nil
				}
			}
			return false, nil
		})
	})

	// Scenario 40.
	t.Run("a namespace ends with its pinned claim", func(t *testing.T) {
		must(t, w.admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
		eventually(t, "all pods and every other claim are gone", func(ctx context.Context) (bool, error) {
			if err := w.admin.List(ctx, &pods, client.InNamespace(ns)); err != nil {
				return false, err
			}
			var claims resourcev1.ResourceClaimList
			err := w.admin.List(ctx, &claims, client.InNamespace(ns))
			return len(pods.Items) == 0 && len(claims.Items) == 1, err
		})
		eventually(t, "kube-controller-manager takes the pods' entries out", func(ctx context.Context) (bool, error) {
			err := w.berth.Get(ctx, client.ObjectKeyFromObject(pin), pin)
			return len(pin.Status.ReservedFor) == 1, err
		})
		if pin.Status.Allocation == nil || pin.DeletionTimestamp == nil || pin.Status.ReservedFor[0].Resource != "workloads" {
			t.Fatalf("the hold is gone: %+v", pin)
		}
		pin.Status = resourcev1.ResourceClaimStatus{}
		must(t, w.berth.Status().Update(ctx, pin))
		pin.Finalizers = nil
		must(t, w.berth.Update(ctx, pin))
		eventually(t, "the namespace is gone", func(ctx context.Context) (bool, error) {
			err := w.admin.Get(ctx, client.ObjectKey{Name: ns}, &corev1.Namespace{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	})

	refused, err := c.Writes(ctx, func(w cluster.Write) bool {
		return w.Code == 403 && w.Resource == "resourceclaims/status" && w.User == scheduler
	})
	must(t, err)
	if len(refused) == 0 {
		t.Error("the audit log has no refused allocation of kube-scheduler")
	}
	t.Logf("kube-scheduler was refused %d times", len(refused))
}
