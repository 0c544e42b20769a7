package quota

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestFlavorIsRespected: one DRA pool is split over two flavors by its hosts. A gang runs on hosts of the flavor that Kueue
// assigned, although its class has devices on the others, and they have no label by which Kueue could keep it away.
func TestFlavorIsRespected(t *testing.T) {
	s, _ := play(t)
	split := newPool("split", "split-0", 8).whole("half-west", 4, 0).whole("half-east", 4, 4)
	s.build(split)
	s.make(class(half, split.driver, "true"))
	s.Create(s.Template(half))
	queue := s.queue("split", "", "0", nil, "split-east", "split-west")
	for _, side := range []string{"east", "west"} {
		f := newFold("split-"+side, "split-"+side, berth.FoldPhysical, "half-"+side)
		f.Spec.Targets = []berth.FoldTarget{{Kind: berth.FoldClusterQueue, Name: queue.Name}}
		s.fold(f)
		s.awaitQuota(f, 4)
		flavor := &kueue.ResourceFlavor{}
		flavor.Name = f.Spec.Flavor
		if s.Get(flavor); len(flavor.Spec.NodeLabels) > 0 || flavor.Labels[berth.LabelFold] != f.Name {
			t.Errorf("ResourceFlavor %s has node labels %v and labels %v", flavor.Name, flavor.Spec.NodeLabels, flavor.Labels)
		}
	}
	gang := func(name string) *batchv1.Job {
		return s.Submit(scene.Gang(name, half, 4, func(j *batchv1.Job) { j.Labels[kueueconstants.QueueLabel] = queue.Name }))
	}
	// Kueue tries the flavors in the queue's order, and Berth would take the first hosts of the pool.
	east := gang("east")
	s.AwaitSeated(east)
	s.AwaitReserved(east, "True Reserved: half-east-0 (split-0) on split-0-4, split-0-5, split-0-6, split-0-7")
	west := gang("west")
	s.AwaitSeated(west)
	s.AwaitReserved(west, "True Reserved: half-west-0 (split-0) on split-0-0, split-0-1, split-0-2, split-0-3")
	s.Finish(west)
	s.Finish(east)
	s.AwaitNoTrace()

	// Where the flavor's own hosts are broken, the other one's are no way out. The queue keeps the number that somebody typed.
	for _, side := range []string{"east", "west"} {
		change(s, &berth.CapacityFold{ObjectMeta: named("split-" + side)}, func(f *berth.CapacityFold) {
			f.Annotations = map[string]string{berth.AnnotationFoldPaused: "true"}
		})
		s.awaitCondition(&berth.CapacityFold{ObjectMeta: named("split-" + side)}, berth.FoldFollowing, "False Paused: …")
	}
	s.cordon("split-0-6", true)
	// A paused fold counts on, and shows that Berth has seen it.
	s.awaitShares(&berth.CapacityFold{ObjectMeta: named("split-east")}, 0)
	waits := gang("waits")
	s.Eventually("what waits is told", func(ctx context.Context) error {
		have, err := s.Reserved(ctx, waits)
		if want := "False HostUnusable: "; err == nil && (len(have) < len(want) || have[:len(want)] != want) {
			err = fmt.Errorf("it reads %s", have)
		}
		return err
	})
	s.cordon("split-0-6", false)
	s.AwaitSeated(waits)
	s.AwaitReserved(waits, "True Reserved: half-east-0 (split-0) on split-0-4, split-0-5, split-0-6, split-0-7")
	s.Finish(waits)
	s.AwaitNoTrace()
}

// TestFlavorIsMade: a flavor that does not exist is created for the fold's hosts, with the label that they alone have and
// tolerations for the taints that all of them carry, and follows when these change.
func TestFlavorIsMade(t *testing.T) {
	s, _ := play(t)
	p := newPool("made", "made-0", 4).whole("made-4", 4, 0)
	s.build(p)
	mark := func(edit func(*corev1.Node)) {
		for _, h := range p.hosts {
			change(s, &corev1.Node{ObjectMeta: named(h)}, edit)
		}
	}
	mark(func(n *corev1.Node) {
		n.Labels["example.com/hall"] = "seven"
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/tpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule})
	})
	f := s.fold(newFold("made", "made", berth.FoldPhysical, "made-4"))
	is := func(labels map[string]string, tolerations ...corev1.Toleration) {
		t.Helper()
		s.Eventually("ResourceFlavor made", func(ctx context.Context) error {
			flavor := &kueue.ResourceFlavor{ObjectMeta: named("made")}
			if err := s.Client.Get(ctx, keyOf(flavor), flavor); err != nil {
				return err
			}
			if got, want := fmt.Sprint(flavor.Spec.NodeLabels, flavor.Spec.Tolerations), fmt.Sprint(labels, tolerations); got != want {
				return fmt.Errorf("it has %s and should have %s", got, want)
			}
			return nil
		})
	}
	is(map[string]string{"example.com/hall": "seven"},
		corev1.Toleration{Key: "example.com/tpu", Operator: corev1.TolerationOpEqual, Value: "yes", Effect: corev1.TaintEffectNoSchedule})
	s.awaitEvent(f, "FlavorCreated", "ResourceFlavor made")
	s.awaitEvent(f, "CohortCreated", "Cohort made, with 4 berth.dev/shares of flavor made")
	// Another host gets the label, so it says nothing of these any more; and they lose their taint.
	change(s, &corev1.Node{ObjectMeta: named("node-0")}, func(n *corev1.Node) { n.Labels["example.com/hall"] = "seven" })
	mark(func(n *corev1.Node) { n.Spec.Taints = nil })
	is(nil)
	change(s, &corev1.Node{ObjectMeta: named("node-0")}, func(n *corev1.Node) { delete(n.Labels, "example.com/hall") })
	is(map[string]string{"example.com/hall": "seven"})
}
