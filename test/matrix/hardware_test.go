package matrix

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

const (
	driver     = "matrix.example.com"
	shares     = "berth.dev/shares"
	wholeClass = "matrix-4"
	halfClass  = "matrix-2"
	check      = "berth"
	poolObject = "matrix"
	laneLabel  = "matrix.example.com/lane"
	// gangSize is how many hosts a lane has, and how many pods a gang that takes all of it.
	gangSize = 4
)

// lane is one disjoint part of the hardware with a queue of its own: four hosts, offered as one device over all of them
// or as two halves.
type lane int

func (l lane) String() string { return fmt.Sprintf("lane-%02d", int(l)) }

func (l lane) host(i int) string { return fmt.Sprintf("%s-host-%d", l, i) }

// objects are what a lane consists of.
func (l lane) objects() []client.Object {
	var all []client.Object
	for i := range gangSize {
		size := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("10"),
		}
		all = append(all, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:        l.host(i),
				Labels:      map[string]string{corev1.LabelHostname: l.host(i), laneLabel: l.String()},
				Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Status: corev1.NodeStatus{Allocatable: size, Capacity: size},
		})
	}
	pool := resourcev1.ResourcePool{Name: l.String(), Generation: 1, ResourceSliceCount: 2}
	counters := map[string]resourcev1.Counter{}
	for i := range gangSize {
		counters[fmt.Sprintf("h%d", i)] = resourcev1.Counter{Value: resource.MustParse("1")}
	}
	return append(all,
		&resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: l.String() + "-counters"},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: driver, Pool: pool, AllNodes: ptr.To(true),
				SharedCounters: []resourcev1.CounterSet{{Name: "hosts", Counters: counters}},
			},
		},
		&resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: l.String() + "-devices"},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: driver, Pool: pool, PerDeviceNodeSelection: ptr.To(true),
				Devices: []resourcev1.Device{l.device("whole", 0, 4), l.device("half-0", 0, 2), l.device("half-1", 2, 4)},
			},
		},
		&kueue.ResourceFlavor{
			ObjectMeta: metav1.ObjectMeta{Name: l.String()},
			Spec:       kueue.ResourceFlavorSpec{NodeLabels: map[string]string{laneLabel: l.String()}},
		},
		&kueue.ClusterQueue{
			ObjectMeta: metav1.ObjectMeta{Name: l.String()},
			Spec: kueue.ClusterQueueSpec{
				NamespaceSelector: &metav1.LabelSelector{},
				ResourceGroups: []kueue.ResourceGroup{{
					CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, shares},
					Flavors: []kueue.FlavorQuotas{{
						Name: kueue.ResourceFlavorReference(l.String()),
						Resources: []kueue.ResourceQuota{
							{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("100")},
							{Name: shares, NominalQuota: resource.MustParse("100")},
						},
					}},
				}},
				AdmissionChecksStrategy: &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: check}}},
			},
		},
	)
}

// device spans the hosts from and up to, but not including, to.
func (l lane) device(name string, from, to int) resourcev1.Device {
	counters := map[string]resourcev1.Counter{}
	var hosts []string
	for i := from; i < to; i++ {
		counters[fmt.Sprintf("h%d", i)] = resourcev1.Counter{Value: resource.MustParse("1")}
		hosts = append(hosts, l.host(i))
	}
	return resourcev1.Device{
		Name:             name,
		Attributes:       map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"hosts": {IntValue: ptr.To(int64(to - from))}},
		ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "hosts", Counters: counters}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts},
		}}}},
	}
}

// common is what the lanes share.
func common() []client.Object {
	class := func(name string, hosts int) client.Object {
		return &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf("device.driver == %q && device.attributes[%q].hosts == %d", driver, driver, hosts),
			}}}},
		}
	}
	return []client.Object{
		class(wholeClass, 4), class(halfClass, 2),
		&berth.AcceleratorPool{ObjectMeta: metav1.ObjectMeta{Name: poolObject}, Spec: berth.AcceleratorPoolSpec{Driver: driver}},
		&kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: check}, Spec: kueue.AdmissionCheckSpec{ControllerName: berth.ControllerName}},
	}
}

// free returns nil when Berth says that no host of the pool is reserved and every device could be.
func (w *world) free(ctx context.Context) error {
	pool := &berth.AcceleratorPool{}
	if err := w.client.Get(ctx, client.ObjectKey{Name: poolObject}, pool); err != nil {
		return err
	}
	if pool.Status.Hosts.Reserved > 0 || pool.Status.Hosts.Quarantined > 0 || len(pool.Status.Holders) > 0 {
		return fmt.Errorf("AcceleratorPool %s counts hosts %+v, holders %v", poolObject, pool.Status.Hosts, pool.Status.Holders)
	}
	if len(pool.Status.Shapes) == 0 {
		return fmt.Errorf("AcceleratorPool %s counts no shapes", poolObject)
	}
	for _, s := range pool.Status.Shapes {
		if s.Free != s.Devices {
			return fmt.Errorf("AcceleratorPool %s counts %d of %d devices %s free", poolObject, s.Free, s.Devices, s.Name)
		}
	}
	return nil
}
