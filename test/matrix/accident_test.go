package matrix

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// befall makes an accident happen to the gang. It returns false when there was nothing to happen to.
func (g *gang) befall(ctx context.Context, a accident) (bool, error) {
	switch a {
	case workloadDeleted:
		return g.deleteAll(ctx, &kueue.WorkloadList{}, client.InNamespace(g.namespace))
	case jobDeleted:
		return true, g.client.Delete(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: g.job.Name}},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
	case namespaceDeleted:
		return true, g.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.namespace}})
	case claimDeleted:
		return g.deleteAll(ctx, &resourcev1.ResourceClaimList{}, client.InNamespace(g.namespace), client.HasLabels{berth.LabelReservation})
	case queueHeld:
		return true, g.hold(ctx, kueue.Hold)
	}
	return true, nil
}

// deleteAll deletes what is in a list, and remembers that the gang is not to be served by it.
func (g *gang) deleteAll(ctx context.Context, list client.ObjectList, which ...client.ListOption) (bool, error) {
	if err := g.client.List(ctx, list, which...); err != nil {
		return false, err
	}
	var all []client.Object
	switch list := list.(type) {
	case *kueue.WorkloadList:
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	case *resourcev1.ResourceClaimList:
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	for _, obj := range all {
		if err := client.IgnoreNotFound(g.client.Delete(ctx, obj)); err != nil {
			return false, err
		}
		g.over[obj.GetUID()] = true
	}
	return len(all) > 0, nil
}

// hold sets the stop policy of the lane's ClusterQueue.
func (g *gang) hold(ctx context.Context, policy kueue.StopPolicy) error {
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: g.lane.String()}}
	return g.client.Patch(ctx, queue, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"stopPolicy":"`+string(policy)+`"}}`)))
}
