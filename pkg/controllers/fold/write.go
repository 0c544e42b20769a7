package fold

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/fold"
)

// attempts are how often a lost race for one target is run again within one look.
const attempts = 5

// write puts the number into one target. It is asserted again on every version that it meets: whoever changed the number
// itself meanwhile makes it another decision, for another look. The result is when to look again.
func (r *reconciler) write(ctx context.Context, f *folded, t *target, k *keptTarget, a aim) (time.Duration, error) {
	e := entry{f.compiled.Flavor, f.compiled.Resource, a.want}
	for range attempts {
		written, created, err := r.send(ctx, f, t, e)
		switch {
		case err == nil:
			k.confirmed, k.refused = a.want, nil
			k.newest = version{written.GetUID(), written.GetGeneration()}
			r.Metrics.QuotaWritten(string(t.Kind))
			if created {
				r.Recorder.Eventf(f.object, nil, corev1.EventTypeNormal, eventCohort, "Folding", "Cohort %s, with %d %s of flavor %s", t.Name, a.want, e.resource, e.flavor)
			}
			return 0, nil
		case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err):
			k.refused = &refusal{of: t.version, want: a.want, message: "the API server refused the write: " + sentence(err), at: f.now}
			return soon, nil
		case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err):
			return 0, fmt.Errorf("writing %s %s: %w", t.Kind, t.Name, err)
		}
		if t.found, err = r.live(ctx, t.FoldTarget); err != nil {
			return 0, err
		}
		write, verdict, now := fold.Assert(a.want, f.seen(*t), a.memory)
		switch {
		case verdict != fold.Follows || now.Asserted != a.memory.Asserted:
			return soon, nil
		case !write:
			k.confirmed = a.want
			return 0, nil
		}
	}
	return soon, nil
}

// send writes one version of a target, or the first.
func (r *reconciler) send(ctx context.Context, f *folded, t *target, e entry) (object *unstructured.Unstructured, created bool, err error) {
	if !t.exists {
		object = e.cohort(t.Name, f.object.Name)
		return object, true, r.Writer.Create(ctx, object)
	}
	if object, err = e.edited(t.object); err != nil {
		return nil, false, err
	}
	return object, false, r.Writer.Update(ctx, object)
}

// sentence is what the API server says, without what the client puts around it, as far as it is short enough for a status.
func sentence(err error) string {
	const most = 1000
	text := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		text = status.Status().Message
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
