package guard

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/invariants"
	"github.com/berth-dev/berth/test/scene"
)

// stage is a scene with people in it.
type stage struct {
	*scene.Scene
}

// begin sets the stage. The controller is not running yet.
func begin(t *testing.T, opts ...invariants.Option) *stage {
	t.Helper()
	return &stage{Scene: scene.New(t, shared.ForTest(t), opts...)}
}

// begun is begin after a controller has run there: the admission check is active, so Kueue reserves quota although
// nobody answers.
func begun(t *testing.T) *stage {
	t.Helper()
	s := begin(t)
	c := s.Run()
	s.awaitActive(scene.Check)
	s.must(c.Stop(), "stopping Berth")
	return s
}

func (s *stage) awaitActive(check string) {
	s.Helper()
	ac := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: check}}
	s.Eventually("AdmissionCheck "+check, func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(ac), ac); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(ac.Status.Conditions, kueue.AdmissionCheckActive) {
			return fmt.Errorf("it is not active: %v", ac.Status.Conditions)
		}
		return nil
	})
}

// run starts the controller and tidies up before it stops.
func (s *stage) run(opts ...scene.RunOptions) *scene.Controller {
	s.Helper()
	c := s.Run(opts...)
	s.tidy()
	return c
}

// tidy deletes all Jobs at the end of the test and sees to it that nothing is left that Berth made for them. It must be
// called after the controller was started, so that this happens before it is stopped.
func (s *stage) tidy() {
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // the test's own has ended
		defer cancel()
		err := s.Client.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(s.Namespace),
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil {
			s.Errorf("deleting the Jobs: %v", err)
		}
		if err := s.Await(ctx, s.NoTrace); err != nil {
			s.Errorf("cleaning up: %v", err)
		}
	})
}

func (s *stage) must(err error, doing string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", doing, err)
	}
}

// editor is a client of a user with the built-in role edit in the scene's namespace, which is what people who run jobs
// usually have.
func (s *stage) editor(user string) client.WithWatch {
	s.Helper()
	s.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	})
	c := s.clientAs(user)
	// The role is aggregated by kube-controller-manager and takes a moment after its start.
	s.Eventually("the rights of "+user, func(ctx context.Context) error {
		return c.Create(ctx, pod(s.Namespace, "harmless"), client.DryRunAll)
	})
	return c
}

func (s *stage) clientAs(user string, groups ...string) client.WithWatch {
	s.Helper()
	c, err := client.NewWithWatch(s.Cluster.RESTConfigFor(user, groups...), client.Options{Scheme: s.Client.Scheme()})
	s.must(err, "connecting as "+user)
	return c
}

// denied checks that a policy refused a write with exactly this message.
func (s *stage) denied(err error, policy, message string) {
	s.Helper()
	if err == nil {
		s.Errorf("allowed; it should be refused: %s", message)
		return
	}
	want := fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", policy, policy, message)
	if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), want) {
		s.Errorf("refused with\n  %v\nand should be with\n  … %s", err, want)
	}
}

// lift takes a policy of Berth out of force until restore is called or the test ends, as an administrator could by mistake.
// offence is a dry run of something that the policy forbids; it shows what the API server enforces.
func (s *stage) lift(policy, file string, offence func(context.Context) error) (restore func()) {
	s.Helper()
	s.must(s.Cluster.Client().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().
		Delete(s.Context(), policy, metav1.DeleteOptions{}), "lifting "+policy)
	s.Eventually(policy+" out of force", offence)
	restore = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), scene.Patience)
		defer cancel()
		root, err := cluster.FindRepository(".")
		if err == nil {
			err = s.Cluster.Apply(ctx, filepath.Join(root, "config/policy", file))
		}
		if err == nil {
			err = s.Await(ctx, func(ctx context.Context) error {
				if err := offence(ctx); err == nil {
					return errors.New("what it forbids is still allowed")
				} else if !strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'") {
					return err
				}
				return nil
			})
		}
		if err != nil {
			s.Errorf("restoring %s: %v", policy, err)
		}
	})
	s.Cleanup(restore)
	return restore
}

// pod is one that no gang knows.
func pod(namespace, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers:                    []corev1.Container{{Name: "main", Image: "main"}},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// using adds a claim to a pod: that of a name, or one from a template.
func using(source corev1.PodResourceClaim) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, source)
		c := &p.Spec.Containers[0]
		c.Resources.Claims = append(c.Resources.Claims, corev1.ResourceClaim{Name: source.Name})
	}
}

func claimNamed(name string) corev1.PodResourceClaim {
	return corev1.PodResourceClaim{Name: "tpu", ResourceClaimName: ptr.To(name)}
}

func claimFrom(template string) corev1.PodResourceClaim {
	return corev1.PodResourceClaim{Name: "tpu", ResourceClaimTemplateName: ptr.To(template)}
}

// claimOf is the first ResourceClaim of the reservation that a Job holds.
func (s *stage) claimOf(job *batchv1.Job) *resourcev1.ResourceClaim {
	s.Helper()
	res := s.reservation(job)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: res.Spec.PodSets[0].Claims[0].Prefix + "-0",
	}}
	s.Get(claim)
	return claim
}

func (s *stage) reservation(job *batchv1.Job) *berth.GangReservation {
	s.Helper()
	res, err := s.ReservationOf(s.Context(), job)
	s.must(err, "finding the reservation of "+job.Name)
	return res
}

// podOf is the pod of a rank that is not being deleted.
func (s *stage) podOf(ctx context.Context, job *batchv1.Job, rank string) (*corev1.Pod, error) {
	pods, err := s.PodsOf(ctx, job)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if pods[i].Labels[batchv1.JobCompletionIndexAnnotation] == rank && pods[i].DeletionTimestamp == nil {
			return &pods[i], nil
		}
	}
	return nil, fmt.Errorf("rank %s of Job %s has no pod", rank, job.Name)
}

// seats are the pods that ever stood in reservedFor of a claim of the namespace.
type seats struct {
	mu   sync.Mutex
	seen map[types.UID]string // the claim's name by the UID of the entry
}

// watchSeats begins to take down who is seated.
func (s *stage) watchSeats() *seats {
	s.Helper()
	seen := &seats{seen: map[types.UID]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	watch, err := s.Client.Watch(ctx, &resourcev1.ResourceClaimList{}, client.InNamespace(s.Namespace))
	s.must(err, "watching ResourceClaims")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			if claim, ok := event.Object.(*resourcev1.ResourceClaim); ok {
				seen.add(claim)
			}
		}
	}()
	s.Cleanup(func() { cancel(); <-done })
	return seen
}

func (s *seats) add(claim *resourcev1.ResourceClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range claim.Status.ReservedFor {
		if ref.Resource == "pods" {
			s.seen[ref.UID] = claim.Name
		}
	}
}

// of returns the claim in which a pod once stood; empty if there was none.
func (s *seats) of(p *corev1.Pod) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[p.UID]
}

// count is how many pods were ever seated; the Workloads' own entries do not count.
func (s *seats) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// gone waits until an object does not exist.
func (s *stage) gone(obj client.Object) {
	s.Helper()
	s.Eventually("the end of "+obj.GetName(), func(ctx context.Context) error {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil {
			return fmt.Errorf("%s still exists (deleting: %v)", obj.GetName(), obj.GetDeletionTimestamp() != nil)
		}
		return client.IgnoreNotFound(err)
	})
}

// release takes a finalizer of the test off, so that the object may go.
func (s *stage) release(obj client.Object, finalizer string) {
	s.Helper()
	s.Eventually("releasing "+obj.GetName(), func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return client.IgnoreNotFound(err)
		}
		obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == finalizer }))
		return client.IgnoreNotFound(s.Client.Update(ctx, obj))
	})
}

// eventSaid waits for an event about an object, as "reason: note".
func (s *stage) eventSaid(about client.Object, want string) {
	s.Helper()
	s.Eventually("the events of "+about.GetName(), func(ctx context.Context) error {
		var list corev1.EventList
		if err := s.Client.List(ctx, &list, client.InNamespace(about.GetNamespace())); err != nil {
			return err
		}
		var said []string
		for _, e := range list.Items {
			if e.InvolvedObject.UID != about.GetUID() {
				continue
			}
			if line := e.Reason + ": " + e.Message; line != want {
				said = append(said, line)
			} else {
				return nil
			}
		}
		return fmt.Errorf("they lack\n  %s\nand are\n  %s", want, strings.Join(said, "\n  "))
	})
}
