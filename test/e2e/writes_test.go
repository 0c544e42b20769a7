package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// berthUser is the user name of Berth's ServiceAccount.
const berthUser = "system:serviceaccount:berth-system:berth-controller"

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
// On a busy machine a gang may take more: where Kueue writes the Workload in the same moment, a write is refused and made
// again, and the end of a Job may be known before the ends of its pods, for which the reservation then says to wait. One of
// a few gangs must do with the minimum.
func TestWritesOfOneGang(t *testing.T) {
	c := shared.ForTest(t)
	s := scene.New(t, c)
	s.Run()
	want := map[string]int{
		"create gangreservations":        1,
		"create resourceclaims":          1,
		"update resourceclaims/status":   3,
		"patch workloads/status":         2,
		"update gangreservations/status": 3,
		"patch pods":                     4,
		"delete resourceclaims":          1,
		"update resourceclaims":          1,
		"delete gangreservations":        1,
		"update gangreservations":        1,
	}
	var have map[string]int
	const gangs = 5
	for n := range gangs {
		before := writesOf(t, c, s.Namespace)
		job := s.Submit(scene.Gang(fmt.Sprintf("counted-%d", n), "tpu-4x4", 4))
		s.AwaitSeated(job)
		s.Finish(job)
		s.AwaitNoTrace()
		have = since(before, writesOf(t, c, s.Namespace))
		diff := cmp.Diff(want, have)
		if diff == "" {
			break
		}
		t.Logf("gang %d, writes (-want +have):\n%s", n, diff)
		if n == gangs-1 {
			t.Errorf("none of %d gangs took the least writes", gangs)
		}
	}
	total := 0
	var lines []string
	for k, n := range have {
		total += n
		lines = append(lines, fmt.Sprintf("%3d %s", n, k))
	}
	slices.Sort(lines)
	t.Logf("%d API writes for a gang of 4, reserve to release:\n%s", total, strings.Join(lines, "\n"))
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
