package guard

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestLeaseInAnotherNamespace: where the Lease is kept is nothing to the proof that the policies are in force. For that Berth
// has its rights in its own namespace only.
func TestLeaseInAnotherNamespace(t *testing.T) {
	s := begin(t)
	meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: "leases"}
	s.Create(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"},
	}}})
	s.Create(&rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "berth-system", Name: "berth-controller"}},
	})
	s.run(scene.RunOptions{Configure: func(c *configv1alpha1.BerthConfiguration) { c.LeaderElection.Namespace = s.Namespace }})
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	s.Finish(job)
	s.AwaitNoTrace()
}
