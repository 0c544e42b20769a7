package line

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
)

// sharing is a site of two hosts with a GPU of 80Gi each, of which pods get whole tens of Gi, and ten by default.
func sharing() *site {
	const driver = "part.example.com"
	s := newSite()
	s.AcceleratorPools, s.DeviceClasses = []*berth.AcceleratorPool{dratest.Pool(driver)}, []*resourcev1.DeviceClass{dratest.Class("part", `device.driver == "`+driver+`"`)}
	s.ResourceClaimTemplates = []*resourcev1.ResourceClaimTemplate{kueuetest.NewTemplate("part")}
	s.Nodes, s.ResourceSlices = nil, nil
	ten := ptr.To(resource.MustParse("10Gi"))
	for _, host := range []string{"h0", "h1"} {
		s.Nodes = append(s.Nodes, dratest.Node(host))
		s.ResourceSlices = append(s.ResourceSlices, dratest.NewSlice(host, driver, host).Node(host).Device(
			dratest.NewDevice("gpu", "x").Shared().Has("memory", "80Gi", &resourcev1.CapacityRequestPolicy{
				Default: ten, ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: ten, Step: ten},
			})).ResourceSlice)
	}
	return s
}

// asks adds a gang that has quota and waits.
func (s *site) asks(name, template string, pods int32) {
	job := kueuetest.NewJob(name, template, pods)
	w := kueuetest.NewWorkload(job).QuotaReserved(kueuetest.Start).Queued(kueuetest.Start.Add(time.Duration(len(s.Jobs)) * time.Second))
	s.Jobs, s.Workloads = append(s.Jobs, job), append(s.Workloads, w.Workload)
}

// plays makes one pass with the controller's placer and what follows from it: reservations with their claims allocated, and the answers given. It says
// what the pass said of each gang: its slice, or why not.
func (s *site) plays(t *testing.T, want ...string) {
	t.Helper()
	v := s.view()
	got := decide(v, fenced{placement.NewScored(0), v.unfenced})
	var said []string
	for _, res := range got.reserve {
		res.UID, res.Status.Phase = types.UID("uid-"+res.Name), berth.PhaseReserved
		said = append(said, res.Spec.Owner.Name+" on "+adaptkueue.Slice(res))
		s.Reservations = append(s.Reservations, res)
	}
	promised := s.view().world.Ledger.Holdings()
	for _, res := range got.reserve {
		s.ResourceClaims = append(s.ResourceClaims, s.pinned(t, res)...)
	}
	if diff := cmp.Diff(promised, s.view().world.Ledger.Holdings()); diff != "" {
		t.Errorf("allocated claims hold something else than their reservations (-promised +held):\n%s", diff)
	}
	for _, a := range got.answers {
		said = append(said, fmt.Sprintf("%s %s: %s", strings.TrimPrefix(a.workload.Name, "job-"), a.answer.Reason, a.answer.Message))
	}
	slices.Sort(said)
	if slices.Sort(want); !slices.Equal(said, want) {
		t.Errorf("the pass says\n%s\nand should say\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
}

// pinned are the claims of a reservation as the controller allocates them.
func (s *site) pinned(t *testing.T, res *berth.GangReservation) []*resourcev1.ResourceClaim {
	t.Helper()
	var out []*resourcev1.ResourceClaim
	job := s.Jobs[slices.IndexFunc(s.Jobs, func(j *batchv1.Job) bool { return j.Name == res.Spec.Owner.Name })]
	for _, c := range res.Spec.PodSets[0].Claims {
		i := slices.IndexFunc(job.Spec.Template.Spec.ResourceClaims, func(p corev1.PodResourceClaim) bool { return p.Name == c.PodClaim })
		name := *job.Spec.Template.Spec.ResourceClaims[i].ResourceClaimTemplateName
		template := s.ResourceClaimTemplates[slices.IndexFunc(s.ResourceClaimTemplates, func(t *resourcev1.ResourceClaimTemplate) bool { return t.Name == name })]
		instances := map[int32]*placement.Instance{}
		for _, d := range c.Devices {
			if instances[d.Instance] == nil {
				instances[d.Instance] = &placement.Instance{}
			}
			in := instances[d.Instance]
			in.Devices = append(in.Devices, placement.Device{
				Request: d.Request, Pool: inventory.PoolID{Driver: d.Driver, Name: d.Pool}, Generation: d.Generation, Name: d.Device,
				Hosts: d.Hosts, Share: d.Share, Capacity: dra.Amounts(d.Capacity),
			})
		}
		for i, in := range instances {
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
				Namespace: res.Namespace, Name: fmt.Sprintf("%s-%d", c.Prefix, i), UID: types.UID(fmt.Sprintf("%s-%d", c.Prefix, i)),
				Labels: map[string]string{berth.LabelReservation: res.Name}, Annotations: map[string]string{berth.AnnotationReservationUID: string(res.UID)},
			}}
			a, err := dra.Allocation(&template.Spec.Spec, claim.UID, *in, s.Snapshot, metav1.NewTime(now))
			if err != nil {
				t.Fatal(err)
			}
			claim.Status.Allocation = a
			out = append(out, claim)
		}
	}
	return out
}

// leaves takes gangs away with all that they held.
func (s *site) leaves(names ...string) {
	for _, name := range names {
		s.ends(name)
		s.ResourceClaims = slices.DeleteFunc(s.ResourceClaims, func(c *resourcev1.ResourceClaim) bool {
			return strings.HasPrefix(c.Labels[berth.LabelReservation], "job-"+name+"-")
		})
	}
}

// reserved is the name of a gang's reservation.
func (s *site) reserved(name string) string {
	for _, r := range s.Reservations {
		if r.Spec.Owner.Name == name && r.Holds() {
			return r.Namespace + "/" + r.Name
		}
	}
	return name + " has no reservation"
}

// memory makes a template for a share.
func (s *site) memory(amount string) string {
	t := kueuetest.NewTemplate("part")
	t.Name, t.UID = "part-"+amount, types.UID("part-"+amount)
	t.Spec.Spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{
		Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(amount)},
	}
	s.ResourceClaimTemplates = append(s.ResourceClaimTemplates, t)
	return t.Name
}

// What one gang leaves of a device another gets; reservations and the claims that are allocated for them say the same.
func TestGangsThatShareDevices(t *testing.T) {
	s := sharing()
	s.asks("first", s.memory("25Gi"), 4)
	s.plays(t, "first on 2 times 30Gi memory of h0/gpu, 2 times 30Gi memory of h1/gpu on h0 (2 pods), h1 (2 pods)")
	s.asks("second", s.memory("20Gi"), 2)
	s.plays(t, "second on 20Gi memory of h0/gpu, 20Gi memory of h1/gpu on h0, h1")
	s.asks("third", "part", 1)
	s.plays(t, fmt.Sprintf("third NoFreeSlice: no part is free: 2 of 2 are held by %[1]s, %[2]s; waits for h0/gpu: drains when %[1]s ends",
		s.reserved("first"), s.reserved("second")))
	s.leaves("second")
	s.plays(t, "third on 10Gi memory of gpu (h0) on h0")
}
