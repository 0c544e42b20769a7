package witness

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// Observation is what the API server holds at one moment, in all namespaces.
type Observation struct {
	Nodes        []corev1.Node
	Slices       []resourcev1.ResourceSlice
	Jobs         []batchv1.Job
	Workloads    []kueue.Workload
	Reservations []berth.GangReservation
	Claims       []resourcev1.ResourceClaim
	Pods         []corev1.Pod
}

// Observe reads everything at one revision. The revision is that of the first list; the other kinds are listed exactly
// there, which all kinds of one etcd can be.
func Observe(ctx context.Context, c client.Reader) (*Observation, error) {
	var claims resourcev1.ResourceClaimList
	if err := c.List(ctx, &claims); err != nil {
		return nil, err
	}
	there := &client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: claims.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}}
	var (
		nodes        corev1.NodeList
		slices       resourcev1.ResourceSliceList
		jobs         batchv1.JobList
		workloads    kueue.WorkloadList
		reservations berth.GangReservationList
		pods         corev1.PodList
	)
	for _, list := range []client.ObjectList{&nodes, &slices, &jobs, &workloads, &reservations, &pods} {
		if err := c.List(ctx, list, there); err != nil {
			return nil, fmt.Errorf("listing %T at revision %s: %w", list, claims.ResourceVersion, err)
		}
	}
	return &Observation{
		Nodes: nodes.Items, Slices: slices.Items, Jobs: jobs.Items, Workloads: workloads.Items,
		Reservations: reservations.Items, Claims: claims.Items, Pods: pods.Items,
	}, nil
}

// Job returns a Job by name; nil if there is none.
func (o *Observation) Job(name string) *batchv1.Job {
	for i := range o.Jobs {
		if o.Jobs[i].Name == name {
			return &o.Jobs[i]
		}
	}
	return nil
}

// WorkloadOf returns the Workload that Kueue made for a Job; nil if there is none.
func (o *Observation) WorkloadOf(job *batchv1.Job) *kueue.Workload {
	for i := range o.Workloads {
		if metav1.IsControlledBy(&o.Workloads[i], job) {
			return &o.Workloads[i]
		}
	}
	return nil
}

// PodsOf returns the pods of a Job that are not being deleted.
func (o *Observation) PodsOf(job *batchv1.Job) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range o.Pods {
		if p := &o.Pods[i]; metav1.IsControlledBy(p, job) && p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// Claim returns a claim; nil if there is none.
func (o *Observation) Claim(namespace, name string) *resourcev1.ResourceClaim {
	for i := range o.Claims {
		if c := &o.Claims[i]; c.Namespace == namespace && c.Name == name {
			return c
		}
	}
	return nil
}

// HostsOf returns the names of the nodes that a device spans, as its driver publishes them: by host name, in one term.
func (o *Observation) HostsOf(driver, pool, device string) []string {
	for _, s := range o.Slices {
		if s.Spec.Driver != driver || s.Spec.Pool.Name != pool {
			continue
		}
		for _, d := range s.Spec.Devices {
			if d.Name == device && d.NodeSelector != nil {
				return o.selected(d.NodeSelector)
			}
		}
	}
	return nil
}

// Under returns the names of the nodes under everything that a claim holds.
func (o *Observation) Under(claim *resourcev1.ResourceClaim) []string {
	var nodes []string
	for _, r := range results(claim) {
		nodes = append(nodes, o.HostsOf(r.Driver, r.Pool, r.Device)...)
	}
	return nodes
}

func (o *Observation) selected(selector *corev1.NodeSelector) []string {
	var names []string
	for _, term := range selector.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key != corev1.LabelHostname || e.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			for _, value := range e.Values {
				names = append(names, o.node(value))
			}
		}
	}
	return names
}

// node is the name of the node with a host name; "" if there is none.
func (o *Observation) node(hostname string) string {
	for _, n := range o.Nodes {
		if n.Labels[corev1.LabelHostname] == hostname {
			return n.Name
		}
	}
	return ""
}
