package render

import (
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// APIVersion of every report.
const APIVersion = "cli.berth.dev/v1"

// State is what becomes of a gang.
type State string

// States of a gang.
const (
	// Reserved: a reservation holds its devices already.
	Reserved State = "Reserved"
	// Fits: it was placed.
	Fits State = "Fits"
	// Waits: it does not fit now, and nobody has to change it for it to fit later.
	Waits State = "Waits"
	// Refused: it can never be served as it is written.
	Refused State = "Refused"
	// Ignored: it is none of Berth's business: it asks for no managed device, or has ended.
	Ignored State = "Ignored"
)

// FitReport says of every gang whether and where it fits.
type FitReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Workloads in the order in which they were placed.
	Workloads []Workload `json:"workloads"`
	// Warnings are sentences about input that may surprise, such as pools that cannot be used.
	Warnings []string `json:"warnings"`
	// Errors are faults of the input, one sentence each with file, document and field. With any there are no workloads.
	Errors []string `json:"errors"`
}

// Workload is one gang: a Job, a JobSet or a Workload that has neither in the input.
type Workload struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	State     State  `json:"state"`
	// Fits is false when the gang does not get what it asks for: state Waits or Refused.
	Fits bool `json:"fits"`
	// Reason is a code of docs/reasons.md for Waits and Refused, NothingManaged, Finished or Inactive for Ignored, else
	// empty.
	Reason string `json:"reason"`
	// Message is one sentence: the slice, or what is missing.
	Message string `json:"message"`
	// Evidence is what the refusal rests on.
	Evidence []reason.Evidence `json:"evidence"`
	// Proved is false when a budget ended the search, so that the answer is not the last word.
	Proved  bool     `json:"proved"`
	PodSets []PodSet `json:"podSets"`
	// Score is what the choice costs everybody else, in hosts of the class in greatest demand; the lowest is taken.
	Score float64 `json:"score"`
	// Destroys counts, by DeviceClass, the free devices that the choice makes unavailable beside its own.
	Destroys map[string]int `json:"destroys"`
	// RunnersUp are the next best choices, best first.
	RunnersUp []RunnerUp `json:"runnersUp"`
}

// PodSet is where the pods of one pod set go.
type PodSet struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	// Hosts are node names in rank order.
	Hosts []string `json:"hosts"`
	// Domains of an interconnect that the devices stand in; Across when they should stand in one and do not.
	Domains []string `json:"domains"`
	Across  bool     `json:"across"`
	Claims  []Claim  `json:"claims"`
}

// Claim is one ResourceClaim of the pod set.
type Claim struct {
	// PodClaim is the entry in the pods' spec.resourceClaims, Instance counts the ResourceClaims that serve it.
	PodClaim string   `json:"podClaim"`
	Instance int      `json:"instance"`
	Devices  []Device `json:"devices"`
}

// Device is one device.
type Device struct {
	Request string `json:"request"`
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
	// Hosts are node names in rank order.
	Hosts []string `json:"hosts"`
	// Capacity is what the claim has of a device that many may share, as quantities by name; empty for a whole device.
	Capacity map[string]string `json:"capacity"`
}

// RunnerUp is a choice that was not taken.
type RunnerUp struct {
	// Devices are <pool>/<device>.
	Devices  []string       `json:"devices"`
	Hosts    []string       `json:"hosts"`
	Score    float64        `json:"score"`
	Destroys map[string]int `json:"destroys"`
}

// NewFitReport has no list that is nil, so that JSON shows [] and not null.
func NewFitReport(workloads []Workload, warnings, errors []string) FitReport {
	return FitReport{APIVersion: APIVersion, Kind: "FitReport", Workloads: full(workloads), Warnings: full(warnings), Errors: full(errors)}
}

// NewWorkload begins a Workload without nil lists.
func NewWorkload(kind, namespace, name string) Workload {
	return Workload{
		Kind: kind, Name: name, Namespace: namespace, Proved: true,
		Evidence: []reason.Evidence{}, PodSets: []PodSet{}, Destroys: map[string]int{}, RunnersUp: []RunnerUp{},
	}
}

// Ignore makes the gang one that is none of Berth's business.
func (w Workload) Ignore(why, message string) Workload {
	w.State, w.Fits, w.Reason, w.Message = Ignored, true, why, message
	return w
}

// Refuse says why the gang does not get its slice.
func (w Workload) Refuse(r *reason.Refusal, proved bool) Workload {
	w.State, w.Fits, w.Reason, w.Message, w.Proved = Waits, false, string(r.Code), r.Message, proved
	if r.Code.Final() {
		w.State = Refused
	}
	w.Evidence = full(r.Evidence)
	return w
}

// Reserve says what a reservation holds for the gang.
func (w Workload) Reserve(sets []PodSet) Workload {
	w.State, w.Fits, w.PodSets, w.Message = Reserved, true, full(sets), Slice(sets)
	return w
}

// Decide takes over a decision that was made on an inventory.
func (w Workload) Decide(d placement.Decision, inv *inventory.Inventory) Workload {
	if !d.Fits() {
		return w.Refuse(d.Refusal, d.Proved)
	}
	w.State, w.Fits, w.Proved = Fits, true, d.Proved
	w.PodSets = PodSets(d)
	w.Message = Slice(w.PodSets)
	w.Score, w.Destroys = d.Score, counts(d.Destroys)
	for _, r := range d.RunnersUp {
		up := RunnerUp{Devices: []string{r.Pool.Name + "/" + r.Name}, Hosts: []string{}, Score: r.Score, Destroys: counts(r.Destroys)}
		if dev := inv.Device(r.Pool, r.Name); dev != nil {
			up.Hosts = slices.Clone(dev.Hosts)
		}
		w.RunnersUp = append(w.RunnersUp, up)
	}
	return w
}

// counts is the map itself, or an empty one instead of nil.
func counts(m map[string]int) map[string]int {
	if m == nil {
		return map[string]int{}
	}
	return m
}

// PodSets of a decision that fits.
func PodSets(d placement.Decision) []PodSet {
	sets := make([]PodSet, 0, len(d.PodSets))
	for _, ps := range d.PodSets {
		set := PodSet{Name: ps.Name, Count: len(ps.Hosts), Hosts: full(ps.Hosts), Domains: []string{}, Across: ps.Across, Claims: []Claim{}}
		for _, d := range ps.Domains {
			set.Domains = append(set.Domains, d.String())
		}
		for _, c := range ps.Claims {
			for i, instance := range c.Instances {
				claim := Claim{PodClaim: c.PodClaim, Instance: i, Devices: []Device{}}
				for _, dev := range instance.Devices {
					claim.Devices = append(claim.Devices, Device{
						Request: dev.Request, Driver: dev.Pool.Driver, Pool: dev.Pool.Name, Device: dev.Name, Hosts: full(dev.Hosts),
						Capacity: Part(dev.Capacity),
					})
				}
				set.Claims = append(set.Claims, claim)
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// Part is what somebody has of a shared device, as quantities by name.
func Part(amounts []inventory.Amount) map[string]string {
	part := map[string]string{}
	for _, a := range amounts {
		part[a.Name] = a.Quantity()
	}
	return part
}

// full is the list itself, or an empty one instead of nil.
func full[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
