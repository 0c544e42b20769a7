package quota

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// TestThousandHosts: the quota follows a change of one host of 1,008 within a second, after the hysteresis where it falls, and
// a change costs one write of the fold's status and one for each target. Without a change nothing is written. Of five rounds
// the fastest counts: the machine may have more to do, which makes a round slower and never faster.
func TestThousandHosts(t *testing.T) {
	// A cluster of its own: nobody plays kubelet for so many, and nobody finds them silent.
	c := cluster.ForTest(t, cluster.Options{
		Audit: true, Without: []string{cluster.ControllerManager, cluster.Scheduler, cluster.KWOK},
		// It would taint the Nodes until kube-controller-manager finds them Ready.
		Args: map[string][]string{cluster.APIServer: {"--disable-admission-plugins=TaintNodesByCondition"}},
	})
	s := &stage{scene.New(t, c)}
	const pools = 63
	var all []*pool
	for i := range pools {
		all = append(all, newPool("fleet", fmt.Sprintf("f%02d", i), 16).whole("fleet-16", 16, 0).whole("fleet-4", 4, 0, 4, 8, 12))
	}
	began := time.Now()
	s.fill(all)
	t.Logf("%d hosts and their devices are published after %v", pools*16, time.Since(began).Round(time.Millisecond))
	// Berth's probe of the policies needs the account that kube-controller-manager would make.
	if err := c.CreateNamespace(t.Context(), "berth-system", nil); err != nil {
		t.Fatal(err)
	}
	s.begin()
	s.Eventually("the end of Berth's start", func(ctx context.Context) error {
		check := &kueue.AdmissionCheck{ObjectMeta: named(scene.Check)}
		if err := s.Client.Get(ctx, keyOf(check), check); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(check.Status.Conditions, kueue.AdmissionCheckActive) {
			return fmt.Errorf("the check says %v", check.Status.Conditions)
		}
		return nil
	})
	f := newFold("fleet", "fleet", berth.FoldPhysical, "fleet-4", "fleet-16")
	f.Spec.HysteresisSeconds = ptr.To[int32](hysteresis)
	f.Spec.Targets = []berth.FoldTarget{{Kind: berth.FoldCohort, Name: "fleet-a", Weight: ptr.To[int32](3)}, {Kind: berth.FoldCohort, Name: "fleet-b"}}
	s.fold(f)
	s.awaitQuota(f, 756, 252)
	s.awaitCondition(f, berth.FoldFollowing, "True Following: …")

	seen := s.numbers(f.Spec.Targets[0].Name)
	const rounds = 5
	var falls, rises []time.Duration
	before := s.writes()
	for round := range rounds {
		host := all[10*round].hosts[5]
		at := time.Now()
		s.cordon(host, true)
		falls = append(falls, seen.await(s, 753).Sub(at))
		s.awaitQuota(f, 753, 251)
		at = time.Now()
		s.cordon(host, false)
		rises = append(rises, seen.await(s, 756).Sub(at))
		s.awaitQuota(f, 756, 252)
		s.awaitCondition(f, berth.FoldFollowing, "True Following: …")
		want := []string{fmt.Sprintf("capacityfolds/status %d", 2*(round+1)), fmt.Sprintf("cohorts %d", 4*(round+1))}
		// The audit log has a write when it is answered, and others may see it before.
		s.Eventually(fmt.Sprintf("two writes of the status and four of Cohorts for each fall and rise up to round %d", round), func(context.Context) error {
			if got := diff(before, s.writes()); !slices.Equal(got, want) {
				return fmt.Errorf("they are %v, want %v", got, want)
			}
			return nil
		})
	}
	t.Logf("the number fell %v after a host was cordoned and rose %v after it was back, with a hysteresis of %d s", falls, rises, hysteresis)
	slices.Sort(falls)
	slices.Sort(rises)
	switch fell := falls[0] - hysteresis*time.Second; {
	case fell < 0:
		t.Errorf("it fell after %v, before the hysteresis", falls[0])
	case fell > time.Second:
		t.Errorf("it fell %v after the hysteresis, want a second at most", fell)
	}
	if rose := rises[0]; rose > time.Second {
		t.Errorf("it rose after %v, want a second at most", rose)
	}
}

// fill publishes pools with Nodes that count as Ready.
func (s *stage) fill(pools []*pool) {
	s.Helper()
	group, ctx := errgroup.WithContext(s.Context())
	group.SetLimit(16)
	s.Create(owner(pools[0]))
	for _, c := range pools[0].classes() {
		s.Create(c)
	}
	for _, p := range pools {
		for _, slice := range p.slices() {
			group.Go(func() error { return s.Client.Create(ctx, slice) })
		}
		for _, h := range p.hosts {
			group.Go(func() error {
				n := node(h)
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test"}}
				return s.Client.Create(ctx, n)
			})
		}
	}
	if err := group.Wait(); err != nil {
		s.Fatal(err)
	}
}

// numberSeen is when the watch told of a Cohort's number.
type numberSeen struct {
	number int64
	at     time.Time
}

type numbersSeen chan numberSeen

// numbers follows the first number of a Cohort.
func (s *stage) numbers(cohort string) numbersSeen {
	s.Helper()
	ctx, stop := context.WithCancel(context.Background())
	events, err := s.Client.Watch(ctx, &kueue.CohortList{}, client.MatchingFields{"metadata.name": cohort})
	if err != nil {
		s.Fatal(err)
	}
	out := make(numbersSeen, 100)
	go func() {
		for e := range events.ResultChan() {
			if c, is := e.Object.(*kueue.Cohort); is {
				out <- numberSeen{c.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.Value(), time.Now()}
			}
		}
	}()
	s.Cleanup(func() {
		stop()
		events.Stop()
	})
	return out
}

// await returns when the number was told.
func (n numbersSeen) await(s *stage, number int64) time.Time {
	s.Helper()
	end := time.After(scene.Patience)
	for {
		select {
		case seen := <-n:
			if seen.number == number {
				return seen.at
			}
		case <-end:
			s.Fatalf("the number never was %d", number)
		}
	}
}

// writes counts what Berth wrote of folds and for them, by resource. One that the API server refused, as it does where
// somebody else was faster, changed nothing.
func (s *stage) writes() map[string]int {
	s.Helper()
	made, err := s.Cluster.Writes(s.Context(), func(w cluster.Write) bool {
		return w.User == berthUser && w.Code < 300 && (strings.HasPrefix(w.Resource, "capacityfolds") || w.APIGroup == kueue.GroupVersion.Group &&
			!strings.HasPrefix(w.Resource, "admissionchecks"))
	})
	if err != nil {
		s.Fatal(err)
	}
	count := map[string]int{}
	for _, w := range made {
		count[w.Resource]++
	}
	return count
}

// diff is what was written in between.
func diff(before, after map[string]int) []string {
	var out []string
	for resource, n := range after {
		if n -= before[resource]; n > 0 {
			out = append(out, fmt.Sprintf("%s %d", resource, n))
		}
	}
	slices.Sort(out)
	return out
}
