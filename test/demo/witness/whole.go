package witness

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// Seating is where a Job ran.
type Seating struct {
	Job string
	// Nodes by rank.
	Nodes []string
	// Devices that it held.
	Devices []string
}

// faults collects what is wrong, so that one look shows all of it.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

func (f faults) err() error { return errors.Join(f...) }

// Whole returns where a Job runs, or everything that keeps it from running whole: each of its pods Running on the host of
// its rank as the GangReservation says, no two on one host, each a consumer of a claim that holds exactly the device
// that the reservation says, which spans exactly those hosts and shares none of them with another claim's.
func (o *Observation) Whole(name string) (Seating, error) {
	s := Seating{Job: name}
	job := o.Job(name)
	if job == nil {
		return s, fmt.Errorf("Job %s does not exist", name)
	}
	res, err := o.reservationOf(job)
	if err != nil {
		return s, err
	}
	var wrong faults
	if len(res.Spec.PodSets) != 1 {
		return s, fmt.Errorf("GangReservation %s has %d pod sets, Job %s has one", res.Name, len(res.Spec.PodSets), name)
	}
	set := res.Spec.PodSets[0]
	if want := int(ptr.Deref(job.Spec.Parallelism, 1)); len(set.Hosts) != want {
		wrong.add("GangReservation %s has %d hosts, Job %s %d pods", res.Name, len(set.Hosts), name, want)
	}
	for rank, host := range set.Hosts {
		node := o.node(host)
		if node == "" {
			wrong.add("host %s of rank %d is no node", host, rank)
		} else if first := slices.Index(s.Nodes, node); first >= 0 {
			wrong.add("ranks %d and %d of GangReservation %s share host %s", first, rank, res.Name, host)
		}
		s.Nodes = append(s.Nodes, node)
	}
	pods, err := o.byRank(job, len(set.Hosts))
	if err != nil {
		wrong = append(wrong, err)
	}
	for rank, p := range pods {
		if p == nil {
			continue
		}
		if p.Status.Phase != corev1.PodRunning {
			wrong.add("pod %s of rank %d is %s", p.Name, rank, pending(p))
		}
		if p.Spec.NodeName != "" && s.Nodes[rank] != "" && p.Spec.NodeName != s.Nodes[rank] {
			wrong.add("pod %s of rank %d is on %s, its host in GangReservation %s is %s", p.Name, rank, p.Spec.NodeName, res.Name, s.Nodes[rank])
		}
	}
	for _, c := range set.Claims {
		for _, d := range c.Devices {
			s.Devices = append(s.Devices, d.Device)
			first := min(int(d.Instance*c.PodsPerClaim), len(s.Nodes))
			last := min(first+int(c.PodsPerClaim), len(s.Nodes))
			if err := o.holds(res, c, d, pods[first:last], s.Nodes[first:last]); err != nil {
				wrong = append(wrong, err)
			}
		}
	}
	if err := o.alone(res, s.Nodes); err != nil {
		wrong = append(wrong, err)
	}
	return s, wrong.err()
}

// alone checks that no claim outside the reservation holds a device that stands on one of the nodes.
func (o *Observation) alone(res *berth.GangReservation, nodes []string) error {
	var wrong faults
	for i := range o.Claims {
		c := &o.Claims[i]
		if c.Namespace == res.Namespace && c.Labels[berth.LabelReservation] == res.Name {
			continue
		}
		for _, node := range o.Under(c) {
			if slices.Contains(nodes, node) {
				wrong.add("ResourceClaim %s holds host %s, which is one of GangReservation %s", c.Name, node, res.Name)
			}
		}
	}
	return wrong.err()
}

// reservationOf is the one reservation of a Job's Workload. Workload and reservation must say that it is held.
func (o *Observation) reservationOf(job *batchv1.Job) (*berth.GangReservation, error) {
	wl := o.WorkloadOf(job)
	if wl == nil {
		return nil, fmt.Errorf("Job %s has no Workload", job.Name)
	}
	var found []*berth.GangReservation
	for i := range o.Reservations {
		if o.Reservations[i].Spec.WorkloadRef.UID == wl.UID && o.Reservations[i].Holds() {
			found = append(found, &o.Reservations[i])
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("Workload %s of Job %s has %d GangReservations: %s", wl.Name, job.Name, len(found), Told(wl))
	}
	if found[0].Status.Phase != berth.PhaseHandedOver {
		return nil, fmt.Errorf("GangReservation %s of Job %s is %s", found[0].Name, job.Name, found[0].Status.Phase)
	}
	if !apimeta.IsStatusConditionTrue(wl.Status.Conditions, berth.ConditionGangReserved) {
		return nil, fmt.Errorf("Workload %s of Job %s does not say GangReserved: %s", wl.Name, job.Name, Told(wl))
	}
	return found[0], nil
}

// byRank returns the pods of a Job by rank; the error names ranks without a pod or with several.
func (o *Observation) byRank(job *batchv1.Job, ranks int) ([]*corev1.Pod, error) {
	var wrong faults
	pods := make([]*corev1.Pod, ranks)
	for _, p := range o.PodsOf(job) {
		rank, err := strconv.Atoi(p.Labels[batchv1.JobCompletionIndexAnnotation])
		switch {
		case err != nil || rank < 0 || rank >= ranks:
			wrong.add("pod %s of Job %s has no rank below %d", p.Name, job.Name, ranks)
		case pods[rank] != nil:
			wrong.add("pods %s and %s of Job %s are both of rank %d", pods[rank].Name, p.Name, job.Name, rank)
		default:
			pods[rank] = p
		}
	}
	var missing []string
	for rank, p := range pods {
		if p == nil {
			missing = append(missing, strconv.Itoa(rank))
		}
	}
	if len(missing) > 0 {
		wrong.add("Job %s has no pod of rank %s", job.Name, strings.Join(missing, ", "))
	}
	return pods, wrong.err()
}

// holds checks one reserved device: its claim holds it and nothing else, the pods consume that claim, and the device
// spans exactly the nodes.
func (o *Observation) holds(res *berth.GangReservation, c berth.ReservedClaim, d berth.ReservedDevice, pods []*corev1.Pod, nodes []string) error {
	var wrong faults
	want := fmt.Sprintf("%s of pool %s (driver %s)", d.Device, d.Pool, d.Driver)
	if spans := o.HostsOf(d.Driver, d.Pool, d.Device); !sameSet(spans, nodes) {
		wrong.add("device %s spans %v, GangReservation %s says %v", want, spans, res.Name, nodes)
	}
	name := fmt.Sprintf("%s-%d", c.Prefix, d.Instance)
	claim := o.Claim(res.Namespace, name)
	if claim == nil {
		wrong.add("ResourceClaim %s does not exist", name)
		return wrong.err()
	}
	var have []string
	for _, r := range results(claim) {
		have = append(have, fmt.Sprintf("%s of pool %s (driver %s)", r.Device, r.Pool, r.Driver))
	}
	if !slices.Equal(have, []string{want}) {
		wrong.add("ResourceClaim %s holds %v, GangReservation %s says %s", name, have, res.Name, want)
	}
	for _, p := range pods {
		if p == nil {
			continue
		}
		if !slices.ContainsFunc(p.Spec.ResourceClaims, func(pc corev1.PodResourceClaim) bool {
			return pc.Name == c.PodClaim && ptr.Deref(pc.ResourceClaimName, "") == name
		}) {
			wrong.add("pod %s does not name ResourceClaim %s", p.Name, name)
		}
		if !slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == p.UID }) {
			wrong.add("ResourceClaim %s is not reserved for pod %s", name, p.Name)
		}
	}
	return wrong.err()
}

// Told is what a user reads on a Workload: the condition GangReserved as "status reason: message", or the conditions
// that there are as long as it has none.
func Told(wl *kueue.Workload) string {
	if c := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved); c != nil {
		return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	}
	var all []string
	for _, c := range wl.Status.Conditions {
		all = append(all, fmt.Sprintf("%s is %s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return "no condition GangReserved; " + strings.Join(all, ", ")
}

// pending is a pod's phase, with the scheduler's word if there is one.
func pending(p *corev1.Pod) string {
	text := string(p.Status.Phase)
	for _, g := range p.Spec.SchedulingGates {
		text += ", gated by " + g.Name
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			text += ": " + c.Message
		}
	}
	return text
}

func results(c *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	if c.Status.Allocation == nil {
		return nil
	}
	return c.Status.Allocation.Devices.Results
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
