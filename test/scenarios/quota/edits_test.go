package quota

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

const (
	// edits by update and by server-side apply each.
	edits = 100
	// Who edits counts along: by update in an annotation and the quota of CPU, by apply in a label and the weight.
	byUpdate, byApply = "test/updated", "test/applied"
)

// TestAdministratorsEdit: somebody updates and somebody applies other fields of a ClusterQueue while its number follows the
// hardware up and down. No edit is lost, and Berth changes nothing but the number.
func TestAdministratorsEdit(t *testing.T) {
	s, _ := play(t)
	queue := s.queue("edited", "", "0", nil, scene.Flavor)
	f := newFold("edited", scene.Flavor, berth.FoldPhysical, "tpu-4x4")
	f.Spec.Targets = []berth.FoldTarget{{Kind: berth.FoldClusterQueue, Name: queue.Name}}
	s.fold(f)
	s.awaitQuota(f, 16)
	versions := s.versions(queue)

	var editors sync.WaitGroup
	for _, edit := range []func(string) error{s.updates, s.applies} {
		editors.Go(func() {
			if err := edit(queue.Name); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		editors.Wait()
		close(done)
	}()
	moves := 0
	for running := true; running; moves++ {
		s.cordon("node-0", true)
		s.awaitQuota(f, 12)
		s.cordon("node-0", false)
		s.awaitQuota(f, 16)
		select {
		case <-done:
			running = false
		default:
		}
	}
	now := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queue.Name}}
	s.Get(now)
	if got, want := [2]string{now.Annotations[byUpdate], now.Labels[byApply]}, strconv.Itoa(edits-1); got != [2]string{want, want} {
		t.Errorf("the last edits are %v, want %s and %s", got, want, want)
	}
	s.awaitCondition(f, berth.FoldFollowing, "True Following: …")
	s.Eventually("the watch", func(context.Context) error { return versions.upTo(now.ResourceVersion) })
	berths := versions.judge(t)
	t.Logf("%d edits by update and %d by apply while the number moved %d times; %d versions are Berth's", edits, edits, 2*moves, berths)
	if berths != 2*moves {
		t.Errorf("Berth wrote %d versions, want one for each of %d moves", berths, 2*moves)
	}
}

// updates edits by full updates on the version that was read.
func (s *stage) updates(name string) error {
	for i := range edits {
		err := changed(s, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(cq *kueue.ClusterQueue) {
			metav1.SetMetaDataAnnotation(&cq.ObjectMeta, byUpdate, strconv.Itoa(i))
			cq.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = parse(strconv.Itoa(1000 + i))
		})
		if err != nil {
			return fmt.Errorf("edit %d by update: %w", i, err)
		}
	}
	return nil
}

// applies edits by server-side apply of fields that nobody else owns.
func (s *stage) applies(name string) error {
	for i := range edits {
		err := s.apply(s.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": kueue.GroupVersion.String(), "kind": "ClusterQueue",
			"metadata": map[string]any{"name": name, "labels": map[string]any{byApply: strconv.Itoa(i)}},
			"spec":     map[string]any{"fairSharing": map[string]any{"weight": strconv.Itoa(1 + i)}},
		}})
		if err != nil {
			return fmt.Errorf("edit %d by apply: %w", i, err)
		}
	}
	return nil
}

func (s *stage) apply(ctx context.Context, obj *unstructured.Unstructured) error {
	return s.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("gitops"), client.ForceOwnership)
}

// versions are those of one ClusterQueue in order, as the watch tells them.
type versions struct {
	mu  sync.Mutex
	all []*kueue.ClusterQueue
}

func (s *stage) versions(queue *kueue.ClusterQueue) *versions {
	s.Helper()
	v := &versions{}
	s.Get(queue)
	v.all = append(v.all, queue.DeepCopy())
	ctx, stop := context.WithCancel(context.Background())
	events, err := s.Client.Watch(ctx, &kueue.ClusterQueueList{}, client.MatchingFields{"metadata.name": queue.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: queue.ResourceVersion}})
	if err != nil {
		s.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range events.ResultChan() {
			if cq, is := e.Object.(*kueue.ClusterQueue); is {
				v.mu.Lock()
				v.all = append(v.all, cq)
				v.mu.Unlock()
			}
		}
	}()
	s.Cleanup(func() {
		stop()
		events.Stop()
		<-ended
	})
	return v
}

func (v *versions) upTo(resourceVersion string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	// Not only the last: Kueue writes its status whenever it gets to it.
	for _, cq := range v.all {
		if cq.ResourceVersion == resourceVersion {
			return nil
		}
	}
	return fmt.Errorf("it has told of version %s and never of %s", v.all[len(v.all)-1].ResourceVersion, resourceVersion)
}

// judge compares every version with the one before: one editor's count rises by one and its field with it, or the number
// alone changes. It counts the latter.
func (v *versions) judge(t *testing.T) (numbers int) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.all {
		now := v.all[i]
		if n, is := now.Annotations[byUpdate]; is {
			want, _ := strconv.Atoi(n)
			if got := now.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.Value(); got != int64(1000+want) {
				t.Errorf("version %s: %s is %s and the quota of CPU %d", now.ResourceVersion, byUpdate, n, got)
			}
		}
		if n, is := now.Labels[byApply]; is {
			want, _ := strconv.Atoi(n)
			if got := now.Spec.FairSharing.Weight.Value(); got != int64(1+want) {
				t.Errorf("version %s: %s is %s and the weight %d", now.ResourceVersion, byApply, n, got)
			}
		}
		if i == 0 {
			continue
		}
		before := v.all[i-1]
		updated, applied := next(t, before.Annotations[byUpdate], now.Annotations[byUpdate]), next(t, before.Labels[byApply], now.Labels[byApply])
		number := func(cq *kueue.ClusterQueue) int64 {
			return cq.Spec.ResourceGroups[0].Flavors[0].Resources[1].NominalQuota.Value()
		}
		moved := number(before) != number(now)
		if moved && (updated || applied) {
			t.Errorf("version %s: somebody's edit and the number changed in one write", now.ResourceVersion)
		}
		if !moved {
			continue
		}
		numbers++
		same := now.DeepCopy()
		same.Spec.ResourceGroups[0].Flavors[0].Resources[1].NominalQuota = before.Spec.ResourceGroups[0].Flavors[0].Resources[1].NominalQuota
		if !reflect.DeepEqual(before.Spec, same.Spec) || !reflect.DeepEqual(before.Labels, same.Labels) || !reflect.DeepEqual(before.Annotations, same.Annotations) {
			t.Errorf("version %s: Berth changed more than the number: it was\n%+v\nand is\n%+v", now.ResourceVersion, before.Spec, now.Spec)
		}
	}
	return numbers
}

// next reports whether a count went on. One that goes back was lost.
func next(t *testing.T, before, now string) bool {
	t.Helper()
	was, err := strconv.Atoi(before)
	if err != nil {
		was = -1
	}
	is, err := strconv.Atoi(now)
	if err != nil {
		is = -1
	}
	if is < was || is > was+1 {
		t.Errorf("an edit was lost: after number %d comes %d", was, is)
	}
	return is != was
}

// TestContested: who changes the number itself is told no once; the second time it is left, whatever the hardware does, until
// the fold or an annotation changes. A pause and Kueue's own limits are respected.
func TestContested(t *testing.T) {
	s, _ := play(t)
	queue := s.queue("contested", "contested", "0", nil, scene.Flavor)
	f := newFold("contested", scene.Flavor, berth.FoldPhysical, "tpu-4x4")
	target := berth.FoldTarget{Kind: berth.FoldClusterQueue, Name: queue.Name}
	f.Spec.Targets = []berth.FoldTarget{target}
	s.fold(f)
	s.awaitQuota(f, 16)
	sets := func(n string) func(*kueue.ClusterQueue) {
		return func(cq *kueue.ClusterQueue) {
			cq.Spec.ResourceGroups[0].Flavors[0].Resources[1].NominalQuota = parse(n)
		}
	}

	change(s, queue, sets("999"))
	s.awaitQuota(f, 16)
	s.awaitTarget(f, berth.TargetFollowing, 16)
	change(s, queue, sets("777"))
	s.awaitTarget(f, berth.TargetContested, 16)
	s.awaitCondition(f, berth.FoldFollowing, "False FoldContested: …")
	s.cordon("node-0", true)
	s.awaitTarget(f, berth.TargetContested, 12)
	s.awaitQuota(f, 777)

	// An annotation ends it, and somebody who applies the whole list has his turn again: once.
	change(s, queue, func(cq *kueue.ClusterQueue) {
		metav1.SetMetaDataAnnotation(&cq.ObjectMeta, berth.AnnotationFoldPaused, "false")
	})
	s.awaitQuota(f, 12)
	manifest := func(n string) {
		t.Helper()
		err := s.apply(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": kueue.GroupVersion.String(), "kind": "ClusterQueue", "metadata": map[string]any{"name": queue.Name},
			"spec": map[string]any{"resourceGroups": []any{map[string]any{
				"coveredResources": []any{"cpu", shares},
				"flavors": []any{map[string]any{"name": scene.Flavor, "resources": []any{
					map[string]any{"name": "cpu", "nominalQuota": "10000"}, map[string]any{"name": shares, "nominalQuota": n},
				}}},
			}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	manifest("555")
	s.awaitTarget(f, berth.TargetFollowing, 12)
	s.awaitQuota(f, 12)
	manifest("556")
	s.awaitTarget(f, berth.TargetContested, 12)
	s.awaitQuota(f, 556)

	// A pause leaves everything, and its end asserts the number.
	change(s, f, func(f *berth.CapacityFold) {
		metav1.SetMetaDataAnnotation(&f.ObjectMeta, berth.AnnotationFoldPaused, "true")
	})
	s.awaitTarget(f, berth.TargetPaused, 12)
	s.awaitCondition(f, berth.FoldFollowing, "False Paused: …")
	s.cordon("node-0", false)
	s.awaitTarget(f, berth.TargetPaused, 16)
	s.awaitQuota(f, 556)
	change(s, f, func(f *berth.CapacityFold) { delete(f.Annotations, berth.AnnotationFoldPaused) })
	s.awaitQuota(f, 16)

	// A lendingLimit above the number is reported: Kueue would refuse the write.
	change(s, queue, func(cq *kueue.ClusterQueue) {
		limit := parse("14")
		cq.Spec.ResourceGroups[0].Flavors[0].Resources[1].LendingLimit = &limit
	})
	s.cordon("node-0", true)
	s.awaitTarget(f, berth.TargetLendingLimit, 12)
	s.awaitCondition(f, berth.FoldFollowing, "False LendingLimit: …")
	s.awaitQuota(f, 16)
	change(s, queue, func(cq *kueue.ClusterQueue) { cq.Spec.ResourceGroups[0].Flavors[0].Resources[1].LendingLimit = nil })
	s.awaitQuota(f, 12)
	s.cordon("node-0", false)
	s.awaitQuota(f, 16)

	// The last value stays when the fold goes, and the target says so.
	s.drop(f)
	s.Get(queue)
	s.awaitEvent(queue, "LastValueStays", "CapacityFold contested is deleted: 16 berth.dev/shares of flavor tpu-v5e stay, and follow nothing any more")
	if n, err := s.quota(s.Context(), target, scene.Flavor, shares); err != nil || n != 16 {
		t.Errorf("after the fold is gone the quota is %d (%v)", n, err)
	}
}

// awaitTarget waits until the fold's only target has that state and number.
func (s *stage) awaitTarget(f *berth.CapacityFold, state berth.FoldTargetState, quota int32) {
	s.Helper()
	s.Eventually("target of "+f.Name, func(ctx context.Context) error {
		var now berth.CapacityFold
		if err := s.Client.Get(ctx, keyOf(f), &now); err != nil {
			return err
		}
		if len(now.Status.Targets) != 1 {
			return fmt.Errorf("there are %d", len(now.Status.Targets))
		}
		if t := now.Status.Targets[0]; t.State != state || t.Quota != quota {
			return fmt.Errorf("it is %+v and should be %s with %d", t, state, quota)
		}
		return nil
	})
}
