package scene

import (
	"context"
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// NoTrace returns nil when the namespace holds no reservation and no pinned claim.
func (s *Scene) NoTrace(ctx context.Context) error {
	var reservations berth.GangReservationList
	if err := s.Client.List(ctx, &reservations, client.InNamespace(s.Namespace)); err != nil {
		return err
	}
	var left []string
	for i := range reservations.Items {
		r := &reservations.Items[i]
		left = append(left, fmt.Sprintf("GangReservation %s (%s, %v)", r.Name, r.Status.Phase, r.Status.Conditions))
	}
	var claims resourcev1.ResourceClaimList
	if err := s.Client.List(ctx, &claims, client.InNamespace(s.Namespace)); err != nil {
		return err
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		if strings.HasPrefix(c.Name, berth.ClaimNamePrefix) {
			left = append(left, fmt.Sprintf("ResourceClaim %s (deleting %v, reserved for %v)", c.Name, c.DeletionTimestamp != nil, c.Status.ReservedFor))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("still there: %s", strings.Join(left, "; "))
	}
	return nil
}
