package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// TestBindingFails: kube-scheduler takes a pod that it could not bind out of its claim and is not allowed to put it in again.
func TestBindingFails(t *testing.T) {
	s := play(t)
	st := s.Follow()
	allow := s.refuseBinding("gang-2-")
	job := s.Submit(scene.Gang("gang", "tpu-4x4", 4))
	// Without an entry in the claim the scheduler would fail before it tries to bind.
	s.Eventually("another attempt to bind the pod that was taken out of its claim", func(ctx context.Context) error {
		writes, err := s.Cluster.Writes(ctx, func(w cluster.Write) bool {
			return w.User == "system:kube-scheduler" && w.Namespace == s.Namespace
		})
		out := slices.IndexFunc(writes, func(w cluster.Write) bool {
			return w.Resource == "resourceclaims/status" && w.Verb == "patch" && w.Code < 300
		})
		if err != nil || out < 0 {
			return errors.Join(err, fmt.Errorf("nobody was taken out; the scheduler wrote %v", writes))
		}
		if !slices.ContainsFunc(writes[out:], func(w cluster.Write) bool {
			return w.Resource == "pods/binding" && strings.HasPrefix(w.Name, "gang-2-")
		}) {
			return fmt.Errorf("the scheduler wrote %v", writes)
		}
		return nil
	})
	allow()
	s.AwaitSeated(job)
	s.awaitRunning(job)
	st.Never("retry")
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestBoundAndTakenOut: a pod was bound and the scheduler did not hear of it. Without its entry a kubelet would not start it.
func TestBoundAndTakenOut(t *testing.T) {
	s := play(t)
	st := s.Follow()
	job := s.Submit(scene.Gang("gang", "tpu-4x4", 4))
	s.AwaitSeated(job)
	claims, err := s.claimsOf(s.Context(), s.reservation(job).Name)
	s.must(err, "listing claims")
	pod := s.podsNow(job)[2]
	scheduler, err := client.New(s.Cluster.RESTConfigFor("system:kube-scheduler"), client.Options{Scheme: s.Client.Scheme()})
	s.must(err, "connecting as the scheduler")
	claim := &claims[0]
	before := claim.ResourceVersion
	s.must(scheduler.Status().Patch(s.Context(), claim, client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"metadata":{"uid":%q},"status":{"reservedFor":[{"$patch":"delete","uid":%q}]}}`, claim.UID, pod.UID))), "taking the pod out of its claim")
	if claim.ResourceVersion == before || standsIn(claim, pod) {
		t.Fatalf("the pod stands there still: %v", claim.Status.ReservedFor)
	}
	s.Eventually("the entry of "+pod.Name, func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err
		}
		if !standsIn(claim, pod) {
			return fmt.Errorf("the claim is reserved for %v", claim.Status.ReservedFor)
		}
		return nil
	})
	st.Never("retry")
	s.Finish(job)
	s.AwaitNoTrace()
}

func standsIn(claim *resourcev1.ResourceClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID })
}

// refuseBinding keeps pods of that prefix from being bound until allow is called or the test ends.
func (s *stage) refuseBinding(prefix string) (allow func()) {
	s.Helper()
	name := "not-now-" + s.Namespace
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}},
				},
			}}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "mine", Expression: fmt.Sprintf("request.namespace == %q && request.name.startsWith(%q)", s.Namespace, prefix),
			}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "not now"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, obj := range []client.Object{policy, binding} {
		s.Create(obj)
		s.Cleanup(func() {
			if err := client.IgnoreNotFound(s.Client.Delete(context.Background(), obj)); err != nil {
				s.Errorf("deleting %T %s: %v", obj, name, err)
			}
		})
	}
	s.Eventually("refusing to bind "+prefix, func(ctx context.Context) error {
		err := s.Cluster.Client().CoreV1().Pods(s.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: prefix + "x"}, Target: corev1.ObjectReference{Kind: "Node", Name: "none"},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("a pod that does not exist would be bound")
		}
		if !strings.Contains(err.Error(), "not now") {
			return err
		}
		return nil
	})
	return func() {
		if err := s.Client.Delete(s.Context(), binding); err != nil && !apierrors.IsNotFound(err) {
			s.Fatalf("allowing to bind %s: %v", prefix, err)
		}
	}
}
