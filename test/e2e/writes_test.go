package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// berthUser is the user name of Berth's ServiceAccount.
const berthUser = "system:serviceaccount:berth-system:berth-controller"

// refused marks a write that lost against another and is made again.
const refused = " (409)"

// writesOf counts what Berth wrote in one namespace, events apart: they decide nothing.
func writesOf(t *testing.T, c *cluster.Cluster, namespace string) map[string]int {
	t.Helper()
	writes, err := c.Writes(t.Context(), func(w cluster.Write) bool {
		return w.User == berthUser && w.Namespace == namespace && w.Resource != "events"
	})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, w := range writes {
		key := w.Verb + " " + w.Resource
		if w.Code >= 400 {
			key += fmt.Sprintf(" (%d)", w.Code)
		}
		count[key]++
	}
	return count
}

// TestWritesOfOneGang counts the API writes of a gang of four from reserve to release. The minimum for this protocol is
// 17 + the phase Reserved for people who watch:
//
//	intent 1, claim 1, allocation with hold 1, Ready 1, phase Reserved 1,
//	gang complete 1, all pods into the claim 1, gates 4,
//	phase Releasing 1, claim: delete, clear, finalizer 3, condition taken back 1, intent: delete, finalizer 2
//
// On a busy machine a gang may take more. Where Kueue writes the Workload in the same moment, a write is refused and made
// again. The end of a Job may be known before the ends of its pods, and then the reservation says for which it waits. Nothing
// else may come on top for any gang, and one of them must do with the minimum.
func TestWritesOfOneGang(t *testing.T) {
	c := shared.ForTest(t)
	s := scene.New(t, c)
	s.Run()
	s.Eventually("the fence, without which Berth would have more to say", func(ctx context.Context) error {
		pool := &berth.AcceleratorPool{ObjectMeta: metav1.ObjectMeta{Name: scene.Pool}}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(pool.Status.Conditions, berth.PoolFenced) {
			return fmt.Errorf("the pool says %v", pool.Status.Conditions)
		}
		return nil
	})
	const (
		pods  = 4
		gangs = 5
		says  = "update gangreservations/status"
	)
	want := map[string]int{
		"create gangreservations":      1,
		"create resourceclaims":        1,
		"update resourceclaims/status": 3,
		"patch workloads/status":       2,
		says:                           3,
		"patch pods":                   pods,
		"delete resourceclaims":        1,
		"update resourceclaims":        1,
		"delete gangreservations":      1,
		"update gangreservations":      1,
	}
	least := 0
	for n := range gangs {
		before := writesOf(t, c, s.Namespace)
		job := s.Submit(scene.Gang(fmt.Sprintf("counted-%d", n), "tpu-4x4", pods))
		s.AwaitSeated(job)
		s.Finish(job)
		s.AwaitNoTrace()
		var have map[string]int
		// The audit log has a write when it is answered, and its effect may be seen before.
		s.Eventually("all writes in the audit log", func(context.Context) error {
			have = since(before, writesOf(t, c, s.Namespace))
			for k, n := range want {
				if have[k] < n {
					return fmt.Errorf("it has %d of %q and should have %d", have[k], k, n)
				}
			}
			return nil
		})
		diff := cmp.Diff(want, have)
		if diff == "" {
			least++
			t.Logf("%d API writes for a gang of %d, reserve to release:\n%s", sum(have), pods, table(have))
			continue
		}
		t.Logf("gang %d, writes (-want +have):\n%s", n, diff)
		for k, n := range have {
			limit := want[k]
			if k == says {
				limit += pods
			}
			if n > limit && !strings.HasSuffix(k, refused) {
				t.Errorf("%d times %q, want %d at most", n, k, limit)
			}
		}
	}
	t.Logf("%d of %d gangs took the least writes", least, gangs)
	if least == 0 {
		t.Error("none took the least writes")
	}
}

func sum(count map[string]int) int {
	total := 0
	for _, n := range count {
		total += n
	}
	return total
}

func table(count map[string]int) string {
	var lines []string
	for k, n := range count {
		lines = append(lines, fmt.Sprintf("%3d %s", n, k))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// since is what came to the counts of before.
func since(before, now map[string]int) map[string]int {
	more := map[string]int{}
	for k, n := range now {
		if n -= before[k]; n > 0 {
			more[k] = n
		}
	}
	return more
}
