package quota

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestTheNextControllerGoesOn: what one process decided, and whom it overruled, the next one knows: it keeps the number until it
// has itself seen less for the whole hysteresis, takes nothing of its predecessor's for somebody else's, and overrules nobody
// twice.
func TestTheNextControllerGoesOn(t *testing.T) {
	s, first := play(t)
	queue := s.queue("successor", "", "0", nil, scene.Flavor)
	f := newFold("successor", scene.Flavor, berth.FoldPhysical, "tpu-4x4")
	const hysteresis = 2
	f.Spec.HysteresisSeconds = ptr.To[int32](hysteresis)
	f.Spec.Targets = []berth.FoldTarget{{Kind: berth.FoldClusterQueue, Name: queue.Name}}
	s.fold(f)
	s.awaitQuota(f, 16)
	types := func(number string) {
		t.Helper()
		change(s, queue, func(cq *kueue.ClusterQueue) {
			cq.Spec.ResourceGroups[0].Flavors[0].Resources[1].NominalQuota = parse(number)
		})
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	s.cordon("node-0", true)
	began := time.Now()
	second := s.Run()
	s.awaitQuota(f, 12)
	if after := time.Since(began); after < hysteresis*time.Second {
		t.Errorf("the next controller let the number fall after %v, before it can have seen it for %d s", after, hysteresis)
	}
	s.awaitTarget(f, berth.TargetFollowing, 12)
	if now := s.foldNow(f); now.Status.Targets[0].Asserted {
		t.Errorf("the predecessor's number is taken for somebody else's: %+v", now.Status.Targets[0])
	}
	// Somebody types a number while nobody looks.
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	types("555")
	third := s.Run()
	s.awaitQuota(f, 12)
	if now := s.foldNow(f); !now.Status.Targets[0].Asserted {
		t.Errorf("it is not noticed: %+v", now.Status.Targets[0])
	}
	if err := third.Stop(); err != nil {
		t.Fatal(err)
	}
	types("556")
	s.begin()
	s.awaitTarget(f, berth.TargetContested, 12)
	s.cordon("node-0", false)
	s.awaitTarget(f, berth.TargetContested, 16)
	s.awaitQuota(f, 556)
	s.drop(f) // While somebody looks.
}

// TestKueueRefuses: what Kueue's webhook says of a write stands in the target's state, and the write is made when it can be.
func TestKueueRefuses(t *testing.T) {
	s, _ := play(t)
	cohort := &kueue.Cohort{
		// As if a fold had made it and somebody had changed it.
		ObjectMeta: metav1.ObjectMeta{Name: "refuses", Labels: map[string]string{berth.LabelFold: "gone"}},
		Spec: kueue.CohortSpec{ResourceGroups: []kueue.ResourceGroup{{
			CoveredResources: []corev1.ResourceName{shares, "example.com/license"},
			Flavors: []kueue.FlavorQuotas{{Name: "other", Resources: []kueue.ResourceQuota{
				{Name: shares, NominalQuota: parse("1")}, {Name: "example.com/license", NominalQuota: parse("1")},
			}}},
		}}},
	}
	s.make(cohort)
	f := s.fold(newFold("refuses", scene.Flavor, berth.FoldPhysical, "tpu-4x4"))
	s.awaitTarget(f, berth.TargetRefused, 16)
	want := "the API server refused the write: "
	if got := s.foldNow(f).Status.Targets[0].Message; !strings.HasPrefix(got, want) || !strings.Contains(got, "spec.resourceGroups[1].coveredResources[0]: Duplicate value") {
		t.Errorf("it says %q", got)
	}
	s.awaitCondition(f, berth.FoldFollowing, "False Refused: Cohort refuses: "+want+"…")
	change(s, cohort, func(c *kueue.Cohort) { c.Spec.ResourceGroups = nil })
	s.awaitQuota(f, 16)
	s.awaitCondition(f, berth.FoldFollowing, "True Following: every target holds its number")
}

// foldNow reads a fold.
func (s *stage) foldNow(f *berth.CapacityFold) *berth.CapacityFold {
	s.Helper()
	now := &berth.CapacityFold{ObjectMeta: metav1.ObjectMeta{Name: f.Name}}
	s.Eventually("reading CapacityFold "+f.Name, func(ctx context.Context) error {
		if err := s.Client.Get(ctx, keyOf(now), now); err != nil {
			return err
		}
		if len(now.Status.Targets) != 1 {
			return fmt.Errorf("it has %d targets", len(now.Status.Targets))
		}
		return nil
	})
	return now
}
