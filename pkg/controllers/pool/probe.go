package pool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/snapshot"
)

const (
	// probeAgain is how soon an unfinished fence is tried again: the API server takes a second or two to enforce a policy.
	probeAgain = time.Second
	// settling is how long after a change the fence is tried again and again, whatever the answer: for a moment the API
	// server enforces what was before.
	settling = 5 * time.Second
	// probeAnyway bounds how long a fence that fell without a change of its objects goes unnoticed.
	probeAnyway = time.Minute
)

// probing is what was tried last. A probe is a dozen dry runs, and most looks are about something else.
type probing struct {
	report policy.Report
	// fence is what the fence was made of, changed when it was last found different, at when it was last tried.
	fence       string
	changed, at time.Time
	// seen is, by AcceleratorPool, the fence behind which everything is known that was allocated before it stood.
	seen map[string]string
}

// due is how long the report is good for still; zero or less when it is time for a new one.
func (p *probing) due(fence string, now time.Time) time.Duration {
	switch {
	case p.at.IsZero() || fence != p.fence:
		return 0
	case p.report.Err() != nil || now.Sub(p.changed) < settling:
		return p.at.Add(probeAgain).Sub(now)
	default:
		return p.at.Add(probeAnyway).Sub(now)
	}
}

// probe tries the fence if it is time for that, and returns when it will be again.
func (r *reconciler) probe(ctx context.Context, s *snapshot.Snapshot, now time.Time) (time.Duration, error) {
	fence, err := r.fenceOf(ctx, s)
	if err != nil {
		return 0, err
	}
	p := &r.probing
	if p.due(fence, now) <= 0 {
		if fence != p.fence {
			p.fence, p.changed = fence, now
		}
		report, err := r.withhold(ctx, s, r.introduce(ctx, policy.Probe(ctx, r.Prober, r.Namespace, pools(s))), fence)
		if err != nil {
			return 0, err
		}
		p.at, p.report = now, report
		r.Fence.observe(p.report, s.AcceleratorPools, now)
	}
	return p.due(fence, now), nil
}

// introduce puts first who this process is, where policies that are not in force were installed for another user: what
// they then say of each of its writes only follows from that.
func (r *reconciler) introduce(ctx context.Context, report policy.Report) policy.Report {
	installed := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if report.PoliciesErr() == nil || r.Client.Get(ctx, client.ObjectKey{Name: policy.Claims}, installed) != nil {
		return report
	}
	if finding, strange := policy.Stranger(ctx, r.Prober, installed); strange {
		report.Findings = slices.Insert(slices.Clone(report.Findings), 0, finding)
	}
	return report
}

// fenceOf names the versions of everything that the fence is made of.
func (r *reconciler) fenceOf(ctx context.Context, s *snapshot.Snapshot) (string, error) {
	var parts []string
	for _, p := range s.AcceleratorPools {
		parts = append(parts, fmt.Sprintf("%s %d", p.UID, p.Generation))
	}
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.ValidatingAdmissionPolicyList{}, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
		&admissionregistrationv1.MutatingAdmissionPolicyList{}, &admissionregistrationv1.MutatingAdmissionPolicyBindingList{},
	} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return "", fmt.Errorf("listing %T: %w", list, err)
		}
		if err := apimeta.EachListItem(list, func(obj runtime.Object) error {
			o, err := apimeta.Accessor(obj)
			if err == nil {
				parts = append(parts, fmt.Sprintf("%s %s", o.GetUID(), o.GetResourceVersion()))
			}
			return err
		}); err != nil {
			return "", err
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n"), nil
}
