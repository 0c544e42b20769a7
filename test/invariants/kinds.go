package invariants

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// kind is one kind of object that is watched.
type kind int

const (
	claims kind = iota
	pods
	workloads
	reservations
	slices
	nodes
	checks
	fences
	kinds int = iota
)

// kindInfo is what the API server calls it.
type kindInfo struct {
	gvk      schema.GroupVersionKind
	resource string
	newList  func() client.ObjectList
}

var infos = [kinds]kindInfo{
	claims: {resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"), "resourceclaims",
		func() client.ObjectList { return &resourcev1.ResourceClaimList{} }},
	pods: {corev1.SchemeGroupVersion.WithKind("Pod"), "pods",
		func() client.ObjectList { return &corev1.PodList{} }},
	workloads: {kueue.GroupVersion.WithKind("Workload"), "workloads",
		func() client.ObjectList { return &kueue.WorkloadList{} }},
	reservations: {v1alpha1.GroupVersion.WithKind("GangReservation"), "gangreservations",
		func() client.ObjectList { return &v1alpha1.GangReservationList{} }},
	slices: {resourcev1.SchemeGroupVersion.WithKind("ResourceSlice"), "resourceslices",
		func() client.ObjectList { return &resourcev1.ResourceSliceList{} }},
	nodes: {corev1.SchemeGroupVersion.WithKind("Node"), "nodes",
		func() client.ObjectList { return &corev1.NodeList{} }},
	checks: {kueue.GroupVersion.WithKind("AdmissionCheck"), "admissionchecks",
		func() client.ObjectList { return &kueue.AdmissionCheckList{} }},
	fences: {v1alpha1.GroupVersion.WithKind("AcceleratorPool"), "acceleratorpools",
		func() client.ObjectList { return &v1alpha1.AcceleratorPoolList{} }},
}

func (k kind) String() string { return infos[k].gvk.Kind }

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, resourcev1.AddToScheme, kueue.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}
