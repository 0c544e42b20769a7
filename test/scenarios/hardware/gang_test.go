package hardware

import (
	"context"
	"errors"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// awaitMoved waits until the gang runs by rank under another reservation than before.
func awaitMoved(s *scene.Scene, job *batchv1.Job, from *berth.GangReservation) *berth.GangReservation {
	s.Helper()
	var to *berth.GangReservation
	s.Eventually("moving "+job.Name, func(ctx context.Context) error {
		var err error
		if to, err = s.ReservationOf(ctx, job); err != nil {
			return err
		}
		if to.UID == from.UID {
			return errors.New("it still has reservation " + from.Name)
		}
		return seatedNow(ctx, s, job, to)
	})
	return to
}

// seatedNow is scene.Seated for a gang whose former pods may still terminate elsewhere.
func seatedNow(ctx context.Context, s *scene.Scene, job *batchv1.Job, res *berth.GangReservation) error {
	pods, err := s.PodsOf(ctx, job)
	if err != nil {
		return err
	}
	hosts := map[string]string{}
	for i := range pods {
		if p := &pods[i]; p.Labels[berth.LabelReservation] == res.Name && p.DeletionTimestamp == nil {
			hosts[p.Labels[batchv1.JobCompletionIndexAnnotation]] = p.Spec.NodeName
		}
	}
	for rank, host := range res.Spec.PodSets[0].Hosts {
		if have := hosts[fmt.Sprint(rank)]; have != host {
			return fmt.Errorf("rank %d runs on %q, its host is %s", rank, have, host)
		}
	}
	return nil
}

// reservation of a gang, which must have one.
func reservation(s *scene.Scene, job *batchv1.Job) *berth.GangReservation {
	s.Helper()
	res, err := s.ReservationOf(s.Context(), job)
	if err != nil {
		s.Fatal(err)
	}
	return res
}

// cut takes "Code: message" apart.
func cut(text string) (code, message string) {
	code, message, _ = strings.Cut(text, ": ")
	return code, message
}
