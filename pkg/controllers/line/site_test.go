package line

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
)

const driver = "tpu.example.com"

// now is when passes of tests are made: an hour after everything else.
var now = kueuetest.Start.Add(time.Hour)

// site is a cluster with two pools of two 4x4 slices of four hosts each, and those who wait.
type site struct {
	*snapshot.Snapshot
	notFenced *reason.Refusal
	unfenced  map[string]*reason.Refusal // by DRA pool
	backoff   map[types.UID]time.Duration
	demand    bool // counts what is asked for
}

func newSite() *site {
	s := &site{Snapshot: &snapshot.Snapshot{
		AcceleratorPools: []*berth.AcceleratorPool{dratest.Pool(driver)},
		DeviceClasses:    []*resourcev1.DeviceClass{dratest.ByTopology("tpu-4x4", driver, "4x4")},
		AdmissionChecks:  []*kueue.AdmissionCheck{kueuetest.NewCheck(kueuetest.Check)},
		ResourceFlavors:  []*kueue.ResourceFlavor{kueuetest.NewFlavor(kueuetest.Flavor)},
		ResourceClaimTemplates: []*resourcev1.ResourceClaimTemplate{
			kueuetest.NewTemplate("tpu-4x4"), kueuetest.NewTemplate("unknown"),
		},
	}, unfenced: map[string]*reason.Refusal{}, backoff: map[types.UID]time.Duration{}}
	for _, pool := range []string{"pod-a", "pod-b"} {
		slice := dratest.NewSlice(pool, driver, pool)
		for d := range 2 {
			var hosts []string
			for h := range 4 {
				hosts = append(hosts, fmt.Sprintf("%s-%d", pool, 4*d+h))
			}
			slice = slice.Device(dratest.NewDevice(fmt.Sprintf("tpu-4x4-0%d", d), "4x4").On(hosts...))
			for _, h := range hosts {
				s.Nodes = append(s.Nodes, dratest.Node(h))
			}
		}
		s.ResourceSlices = append(s.ResourceSlices, slice.ResourceSlice)
	}
	return s
}

// waits adds a gang of four that has quota and waits for its slice.
func (s *site) waits(name string, change ...func(*batchv1.Job)) kueuetest.Workload {
	job := kueuetest.NewJob(name, "tpu-4x4", 4)
	for _, c := range change {
		c(job)
	}
	w := kueuetest.NewWorkload(job).QuotaReserved(kueuetest.Start)
	s.Jobs, s.Workloads = append(s.Jobs, job), append(s.Workloads, w.Workload)
	return w
}

// pass decides once.
func (s *site) pass() steps {
	v := s.view()
	return decide(v, fenced{placement.FirstFit{}, v.unfenced})
}

func (s *site) view() *view {
	world := cluster.New().World(s.Snapshot)
	var folds adaptkueue.FoldCompiler
	v := index(s.Snapshot, world, folds.Compile(s.CapacityFolds, world.Inventory))
	v.now, v.notFenced, v.seating = now, s.notFenced, 5*time.Minute
	v.unfenced = func(id inventory.PoolID) *reason.Refusal { return s.unfenced[id.Name] }
	v.backoff = func(uid types.UID) (time.Duration, *reason.Refusal) {
		if wait := s.backoff[uid]; wait > 0 {
			return wait, &reason.Refusal{Code: reason.ReservationFailed, Message: "it failed before"}
		}
		return 0, nil
	}
	if s.demand {
		v.demand = line.NewDemand()
	}
	return v
}

// tell is what the steps do, in words and sorted: "a reserves pool/device", "b Pending NoFreeSlice: sentence", "again in 1m0s".
func (s steps) tell() string {
	var lines []string
	for _, res := range s.reserve {
		d := res.Spec.PodSets[0].Claims[0].Devices[0]
		lent := ""
		if res.Spec.Lent {
			lent = " (lent)"
		}
		lines = append(lines, fmt.Sprintf("%s reserves %s/%s%s", strings.TrimPrefix(res.Spec.WorkloadRef.Name, "job-"), d.Pool, d.Device, lent))
	}
	for _, p := range s.targets {
		d := p.res.Spec.PodSets[0].Claims[0].Devices[0]
		lines = append(lines, fmt.Sprintf("%s keeps %s/%s", strings.TrimPrefix(p.res.Spec.WorkloadRef.Name, "job-"), d.Pool, d.Device))
	}
	for _, res := range s.drop {
		lines = append(lines, "drops "+res.Name)
	}
	for key, why := range s.recalls {
		if why != nil {
			lines = append(lines, fmt.Sprintf("recalls %s %s: %s", key.Name, why.Code, why.Message))
		}
	}
	for _, a := range s.answers {
		told := fmt.Sprintf("%s %s %s: %s", strings.TrimPrefix(a.workload.Name, "job-"), a.answer.State, a.answer.Reason, a.answer.Message)
		if a.answer.Check != kueuetest.Check || a.answer.Reserved || len(a.answer.PodSetUpdates) > 0 {
			told += fmt.Sprintf(" %+v", a.answer)
		}
		lines = append(lines, told)
	}
	for _, wl := range s.unpark {
		lines = append(lines, strings.TrimPrefix(wl.Name, "job-")+" is queued")
	}
	slices.Sort(lines)
	if s.again > 0 {
		lines = append(lines, "again in "+s.again.String())
	}
	return strings.Join(lines, "\n")
}

func (s *site) passes(t *testing.T, want ...string) {
	t.Helper()
	if got := s.pass().tell(); got != strings.Join(want, "\n") {
		t.Errorf("the pass says\n%s\nand should say\n%s", got, strings.Join(want, "\n"))
	}
}

// takes lets a stranger hold a device.
func (s *site) takes(pool, device string) {
	s.ResourceClaims = append(s.ResourceClaims, dratest.Claim("x", pool+"-"+device, dratest.Result(driver, pool, device)))
}

// gives lets a gang have its reservation, as a former pass would have written it.
func (s *site) gives(t *testing.T, phase berth.ReservationPhase) *berth.GangReservation {
	t.Helper()
	got := s.pass()
	if len(got.reserve) != 1 {
		t.Fatalf("%d reservations", len(got.reserve))
	}
	res := got.reserve[0]
	res.UID, res.Status.Phase = "res", phase
	s.Reservations = append(s.Reservations, res)
	return res
}

func template(name string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.Template.Spec.ResourceClaims[0].ResourceClaimTemplateName = &name }
}

func unclaimed(j *batchv1.Job) { j.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{} }

// ours is the first claim of a reservation, allocated.
func ours(res *berth.GangReservation) *resourcev1.ResourceClaim {
	c := res.Spec.PodSets[0].Claims[0]
	d := c.Devices[0]
	claim := dratest.Claim(res.Namespace, c.Prefix+"-0", dratest.Result(d.Driver, d.Pool, d.Device))
	claim.Labels = map[string]string{berth.LabelReservation: res.Name}
	claim.Annotations = map[string]string{berth.AnnotationReservationUID: string(res.UID)}
	return claim
}
