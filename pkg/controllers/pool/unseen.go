package pool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// withhold takes InForce back from fences behind which others have allocated what the cache does not show yet. A fence
// keeps new writes away; the last one before it may still be on its way to our watch. Once it is seen, nobody but Berth
// adds to what is taken there, so a fence is looked behind once.
func (r *reconciler) withhold(ctx context.Context, s *snapshot.Snapshot, report policy.Report, fence string) (policy.Report, error) {
	fresh := func(f policy.Finding) bool {
		return f.AcceleratorPool != "" && f.Verdict == policy.InForce && r.probing.seen[f.AcceleratorPool] != fence
	}
	if !slices.ContainsFunc(report.Findings, fresh) {
		return report, nil
	}
	unseen, err := r.unseen(ctx, s)
	if err != nil {
		return report, err
	}
	if r.probing.seen == nil {
		r.probing.seen = map[string]string{}
	}
	report.Findings = slices.Clone(report.Findings)
	for i, f := range report.Findings {
		switch claims := unseen[f.AcceleratorPool]; {
		case !fresh(f):
		case len(claims) == 0:
			r.probing.seen[f.AcceleratorPool] = fence
		default:
			report.Findings[i].Verdict = policy.Absent
			report.Findings[i].Message = "claims that were allocated before it are not known in full yet: " + some(claims)
		}
	}
	return report, nil
}

// unseen asks the API server for the claims that are allocated, and names those that do not have the same devices in the cache,
// by the AcceleratorPool of their devices.
func (r *reconciler) unseen(ctx context.Context, s *snapshot.Snapshot) (map[string][]string, error) {
	var list resourcev1.ResourceClaimList
	if err := r.Live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing claims: %w", err)
	}
	managed := dra.NewManaged(s.AcceleratorPools)
	unseen := map[string][]string{}
	for i := range list.Items {
		live := &list.Items[i]
		owners := owners(managed, live)
		if len(owners) == 0 {
			continue
		}
		var cached resourcev1.ResourceClaim
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(live), &cached)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading claim %s/%s: %w", live.Namespace, live.Name, err)
		}
		if err == nil && cached.UID == live.UID && equality.Semantic.DeepEqual(cached.Status.Allocation, live.Status.Allocation) {
			continue
		}
		for _, owner := range owners {
			unseen[owner] = append(unseen[owner], live.Namespace+"/"+live.Name)
		}
	}
	return unseen, nil
}

// owners are the AcceleratorPools whose devices are allocated to a claim.
func owners(managed dra.Managed, claim *resourcev1.ResourceClaim) []string {
	if claim.Status.Allocation == nil {
		return nil
	}
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		if owner := managed.Owner(inventory.PoolID{Driver: result.Driver, Name: result.Pool}); owner != nil {
			names = append(names, owner.Name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return slices.Compact(names)
}
