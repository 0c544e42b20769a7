package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "berth.dev", Version: "v1alpha1"}

var (
	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers Berth's kinds.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&AcceleratorPool{}, &AcceleratorPoolList{},
		&GangReservationConfig{}, &GangReservationConfigList{},
		&GangReservation{}, &GangReservationList{},
		&CapacityFold{}, &CapacityFoldList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
