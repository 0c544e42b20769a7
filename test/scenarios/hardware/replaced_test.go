package hardware

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestPoolDeletedAndCreatedAgain: an AcceleratorPool is gone for a while, as when a tool replaces it. Nobody in the line is
// let go meanwhile, and the gang that runs is served to its end: its ranks are replaced and its slice is given back. When
// the pool is there again the line goes on.
func TestPoolDeletedAndCreatedAgain(t *testing.T) {
	s := begin(t)
	r := standard(s, "replaced")
	st := s.Follow()
	run(s)
	runs := s.Submit(scene.Gang("runs", whole, 8))
	s.AwaitSeated(runs)
	res := reservation(s, runs)
	line := []*batchv1.Job{s.Submit(scene.Gang("quad", quad, 4)), s.Submit(scene.Gang("pair", pair, 2))}
	for i, class := range []string{quad, pair} {
		s.AwaitReserved(line[i], fmt.Sprintf("False NoFreeSlice: no %s is free: %d of %[2]d are held by %s/%s", class, 2+2*i, s.Namespace, res.Name))
	}

	if err := s.Client.Delete(s.Context(), r.owner(berth.FenceEnforce)); err != nil {
		t.Fatal(err)
	}
	missing := func() {
		t.Helper()
		for i, class := range []string{quad, pair} {
			s.AwaitReserved(line[i], "False PoolMissing: the gang waited for "+class+", which no AcceleratorPool matches any more: "+
				"create the AcceleratorPool again; to run the gang without Berth submit it again or take the check off its ClusterQueue")
		}
	}
	missing()
	old := podOn(s, runs, "replaced-5")
	if err := s.Client.Delete(s.Context(), old); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the successor on replaced-5", func(ctx context.Context) error {
		pods, err := s.PodsOf(ctx, runs)
		if err != nil {
			return err
		}
		for i := range pods {
			if p := &pods[i]; p.Spec.NodeName == old.Spec.NodeName && p.UID != old.UID && p.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return errors.New("it does not run")
	})
	if now := reservation(s, runs); now.UID != res.UID {
		t.Errorf("the gang was moved from reservation %s to %s", res.Name, now.Name)
	}
	s.Finish(runs)
	s.Eventually("the end of "+res.Name, func(ctx context.Context) error {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(res), res)
		if err == nil {
			err = fmt.Errorf("it is %s", res.Status.Phase)
		}
		return client.IgnoreNotFound(err)
	})
	missing()

	r.own()
	for _, job := range line {
		s.AwaitSeated(job)
		if told := strings.Join(st.Of(job), "\n"); strings.Contains(told, "asks for no device") {
			t.Errorf("%s was let go:\n%s", job.Name, told)
		}
		s.Finish(job)
	}
	s.AwaitNoTrace()
}
