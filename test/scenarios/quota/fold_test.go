package quota

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// newFold folds classes into one flavor, for one Cohort of the fold's name, and falls as soon as it may.
func newFold(name, flavor string, mode berth.FoldMode, classes ...string) *berth.CapacityFold {
	return &berth.CapacityFold{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: berth.CapacityFoldSpec{
			DeviceClasses: classes, Flavor: flavor, Mode: mode, HysteresisSeconds: ptr.To[int32](0),
			Targets: []berth.FoldTarget{{Kind: berth.FoldCohort, Name: name}},
		},
	}
}

// fold creates a CapacityFold. It goes with the test and takes what it created with it.
func (s *stage) fold(f *berth.CapacityFold) *berth.CapacityFold {
	s.Helper()
	s.Cleanup(func() {
		for _, t := range f.Spec.Targets {
			if t.Kind == berth.FoldCohort {
				s.drop(&kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: t.Name}})
			}
		}
		if f.Spec.Flavor != scene.Flavor {
			// It goes with the ClusterQueues that have it.
			if err := s.Client.Delete(context.Background(), &kueue.ResourceFlavor{ObjectMeta: named(f.Spec.Flavor)}); client.IgnoreNotFound(err) != nil {
				s.Errorf("deleting ResourceFlavor %s: %v", f.Spec.Flavor, err)
			}
		}
	})
	s.make(f)
	return f
}

// change edits an object until the API server takes it.
func change[T client.Object](s *stage, obj T, edit func(T)) {
	s.Helper()
	if err := changed(s, obj, edit); err != nil {
		s.Fatalf("changing %T %s: %v", obj, obj.GetName(), err)
	}
}

// changed is change for goroutines other than the test's.
func changed[T client.Object](s *stage, obj T, edit func(T)) error {
	return s.Await(s.Context(), func(ctx context.Context) error {
		if err := s.Client.Get(ctx, keyOf(obj), obj); err != nil {
			return err
		}
		edit(obj)
		return s.Client.Update(ctx, obj)
	})
}

// quota is what a target holds of a flavor's resource.
func (s *stage) quota(ctx context.Context, target berth.FoldTarget, flavor, resource string) (int64, error) {
	groups, err := s.groups(ctx, target)
	if err != nil {
		return 0, err
	}
	for _, g := range groups {
		for _, f := range g.Flavors {
			for _, r := range f.Resources {
				if string(f.Name) == flavor && string(r.Name) == resource {
					return r.NominalQuota.Value(), nil
				}
			}
		}
	}
	return 0, fmt.Errorf("%s %s has no quota for %s of %s", target.Kind, target.Name, resource, flavor)
}

func (s *stage) groups(ctx context.Context, target berth.FoldTarget) ([]kueue.ResourceGroup, error) {
	key := types.NamespacedName{Name: target.Name}
	if target.Kind == berth.FoldCohort {
		var c kueue.Cohort
		err := s.Client.Get(ctx, key, &c)
		return c.Spec.ResourceGroups, err
	}
	var q kueue.ClusterQueue
	err := s.Client.Get(ctx, key, &q)
	return q.Spec.ResourceGroups, err
}

// stands reports what keeps the fold's targets from holding these quotas, in order, and nothing else.
func (s *stage) stands(ctx context.Context, f *berth.CapacityFold, want ...int64) error {
	var have []int64
	for _, t := range f.Spec.Targets {
		n, err := s.quota(ctx, t, f.Spec.Flavor, shares)
		if err != nil {
			return err
		}
		have = append(have, n)
	}
	if !slices.Equal(have, want) {
		return fmt.Errorf("the targets of CapacityFold %s hold %v and should hold %v; %s", f.Name, have, want, s.story(ctx, f.Name))
	}
	return nil
}

// awaitQuota waits until the fold's targets hold these quotas.
func (s *stage) awaitQuota(f *berth.CapacityFold, want ...int64) {
	s.Helper()
	s.Eventually("quota of "+f.Name, func(ctx context.Context) error { return s.stands(ctx, f, want...) })
}

// story is what a fold says of itself.
func (s *stage) story(ctx context.Context, name string) string {
	var f berth.CapacityFold
	if err := s.Client.Get(ctx, types.NamespacedName{Name: name}, &f); err != nil {
		return err.Error()
	}
	lines := []string{fmt.Sprintf("%d shares, observed %+v", f.Status.Shares, f.Status.Observed)}
	for _, c := range f.Status.Conditions {
		lines = append(lines, sentence(&c))
	}
	return strings.Join(append(lines, f.Status.Losses...), "\n  ")
}

func sentence(c *metav1.Condition) string {
	return fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
}

// awaitCondition waits until a condition of the fold reads "status reason: message", or begins so where want ends with "…".
func (s *stage) awaitCondition(f *berth.CapacityFold, kind, want string) {
	s.Helper()
	s.Eventually("condition "+kind+" of CapacityFold "+f.Name, func(ctx context.Context) error {
		var now berth.CapacityFold
		if err := s.Client.Get(ctx, keyOf(f), &now); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(now.Status.Conditions, kind)
		if c == nil {
			return fmt.Errorf("there is none; %s", s.story(ctx, f.Name))
		}
		have := strings.TrimPrefix(sentence(c), kind+" ")
		if begin, open := strings.CutSuffix(want, "…"); have != want && !(open && strings.HasPrefix(have, begin)) {
			return fmt.Errorf("it reads\n  %s\nand should read\n  %s", have, want)
		}
		return nil
	})
}

// awaitEvent waits until an event of that reason about an object has this note.
func (s *stage) awaitEvent(about client.Object, reason, note string) {
	s.Helper()
	s.Eventually(fmt.Sprintf("event %s on %T %s", reason, about, about.GetName()), func(ctx context.Context) error {
		var list corev1.EventList
		if err := s.Client.List(ctx, &list); err != nil {
			return err
		}
		var have []string
		for _, e := range list.Items {
			if e.InvolvedObject.UID == about.GetUID() && e.Reason == reason {
				if e.Message == note {
					return nil
				}
				have = append(have, e.Message)
			}
		}
		return fmt.Errorf("it should read\n  %s\nand there are\n  %s", note, strings.Join(have, "\n  "))
	})
}

// queue is a ClusterQueue with Berth's check and any amount of CPU, and a LocalQueue of the same name that leads to it.
// Each flavor has the quota of shares.
func (s *stage) queue(name, cohort string, quota string, edit func(*kueue.ClusterQueue), flavors ...string) *kueue.ClusterQueue {
	s.Helper()
	cq := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kueue.ClusterQueueSpec{
			CohortName: kueue.CohortReference(cohort), NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.BestEffortFIFO,
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, shares}}},
			AdmissionChecksStrategy: &kueue.AdmissionChecksStrategy{
				AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: scene.Check}},
			},
		},
	}
	for _, f := range flavors {
		cq.Spec.ResourceGroups[0].Flavors = append(cq.Spec.ResourceGroups[0].Flavors, kueue.FlavorQuotas{
			Name: kueue.ResourceFlavorReference(f),
			Resources: []kueue.ResourceQuota{
				{Name: corev1.ResourceCPU, NominalQuota: parse("10000")}, {Name: shares, NominalQuota: parse(quota)},
			},
		})
	}
	if edit != nil {
		edit(cq)
	}
	s.make(cq)
	s.make(&kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)},
	})
	s.Cleanup(s.endJobs)
	return cq
}

func keyOf(obj client.Object) client.ObjectKey { return client.ObjectKeyFromObject(obj) }

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
