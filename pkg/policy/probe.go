package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// AnnotationProbe marks an object on which a dry run, even Berth's own, counts as a stranger's write.
const AnnotationProbe = "berth.dev/probe"

// The probe of a status policy needs an object that exists. These two ResourceClaims are created in Berth's namespace and
// stay; they are never allocated, carry no other key of Berth, and no pod may name them. berth-held-claims looks at the
// second only, so that each policy's refusal can be seen by itself: an answer names one policy.
const (
	CanaryPool = "berth.probe-pool"
	CanaryHeld = "berth.probe-held"
)

// Probe tries in dry runs what the policies forbid and reports which of them are in force. It must run as Berth, in
// Berth's namespace; pools are the AcceleratorPools as last read. c needs the kinds of batch/v1, resource.k8s.io/v1 and
// berth.dev in its scheme and is not asked to read.
//
// It costs about ten requests and one for each AcceleratorPool with fence Enforce, or as many as its selector has entries
// where others select all that it selects. Those with fence Observe are not tried: nothing fences them.
func Probe(ctx context.Context, c client.Client, namespace string, pools []v1alpha1.AcceleratorPool) Report {
	p := prober{Client: c, namespace: namespace}
	report := Report{Findings: []Finding{
		p.heldClaims(ctx),
		p.claims(ctx),
		judge(Reservations, "is written by Berth alone", p.create(ctx, p.reservation())),
		p.pin(ctx),
		judge(Pods, "only the pods of that gang may use it", p.create(ctx, p.thief())),
		judge(JobKeys, "with the keys of another Job's reservation", p.create(ctx, p.copiedJob())),
	}}
	// Without JobSet there is nothing to guard.
	if err := p.create(ctx, p.copiedJobSet()); !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		report.Findings = append(report.Findings, judge(JobSetKeys, "with the keys of another JobSet's reservation", err))
	}
	for i := range pools {
		if pools[i].Spec.Fence != v1alpha1.FenceObserve && pools[i].DeletionTimestamp == nil {
			report.Findings = append(report.Findings, p.fence(ctx, &pools[i], pools))
		}
	}
	return report
}

type prober struct {
	client.Client
	namespace string
}

func (p prober) create(ctx context.Context, object client.Object) error {
	return p.Create(ctx, object, client.DryRunAll)
}

func (p prober) heldClaims(ctx context.Context) Finding {
	err := p.allocate(ctx, CanaryHeld, "held", resourcev1.DeviceRequestAllocationResult{
		// No AcceleratorPool has this driver, so berth-claim-status has no part in the answer.
		Request: "probe", Driver: "probe.berth.dev", Pool: "probe", Device: "probe",
	})
	return judge(HeldClaims, "its allocation is changed by Berth alone", err)
}

// claims also tries what Berth must be able to do. A policy that was made for another service account refuses everybody
// and would look the best of all.
func (p prober) claims(ctx context.Context) Finding {
	finding := judge(Claims, "are reserved for Berth", p.create(ctx, p.claim("berth.probe", "claims")))
	if finding.Verdict != InForce {
		return finding
	}
	own := p.claim("berth.probe", "")
	own.Annotations = nil
	if by, said, refused := refusal(p.create(ctx, own)); refused && by == Claims {
		finding.Verdict = Unclear
		finding.Message = "it takes this controller for a stranger, so it was installed for another service account: " + said
	}
	return finding
}

var leavesToBerth = regexp.MustCompile(`: AcceleratorPool (\S+) leaves its devices to Berth\..* \(generation (\d+), UID (\S+)\)$`)

// fence tries to allocate devices of an AcceleratorPool, in a DRA pool that no other one selects if there is such a pool:
// only there must the answer be its own. Where others select all that it selects, an answer in the name of one of those will
// do.
func (p prober) fence(ctx context.Context, pool *v1alpha1.AcceleratorPool, all []v1alpha1.AcceleratorPool) Finding {
	examples := examplePools(pool.Spec.PoolSelector, "0123456789abcdefghijklmnopqrstuvwxyz")
	alone := slices.IndexFunc(examples, func(example string) bool { return !others(pool, all, example) })
	if alone >= 0 {
		return p.fenceOf(ctx, pool, examples[alone], true)
	}
	finding := Finding{Policy: ClaimStatus, AcceleratorPool: pool.Name, Verdict: Unclear, Message: "there is no name of a pool that could be tried"}
	for _, example := range examplePools(pool.Spec.PoolSelector, "0") {
		if finding = p.fenceOf(ctx, pool, example, false); finding.Verdict != InForce {
			break
		}
	}
	return finding
}

// others reports whether another AcceleratorPool fences a DRA pool of that name too.
func others(pool *v1alpha1.AcceleratorPool, all []v1alpha1.AcceleratorPool, name string) bool {
	return slices.ContainsFunc(all, func(o v1alpha1.AcceleratorPool) bool {
		return o.Name != pool.Name && o.Spec.Driver == pool.Spec.Driver && o.Spec.Fence != v1alpha1.FenceObserve && o.Spec.PoolSelector.Selects(name)
	})
}

// fenceOf tries to allocate a device of one DRA pool, which is the AcceleratorPool's alone or also that of others. The answer
// to a probe carries the generation and the UID of the AcceleratorPool that the API server's policy has seen: a refusal out
// of an older one says nothing about what was just changed, nor one out of a former object of that name.
func (p prober) fenceOf(ctx context.Context, pool *v1alpha1.AcceleratorPool, example string, alone bool) Finding {
	err := p.allocate(ctx, CanaryPool, "pool", resourcev1.DeviceRequestAllocationResult{
		Request: "probe", Driver: pool.Spec.Driver, Pool: example, Device: "probe",
	})
	finding := judge(ClaimStatus, "leaves its devices to Berth", err)
	finding.AcceleratorPool = pool.Name
	if finding.Verdict != InForce {
		return finding
	}
	said := leavesToBerth.FindStringSubmatch(finding.Message)
	if said == nil {
		finding.Verdict = Unclear
		finding.Message = "the refusal does not name the AcceleratorPool: " + finding.Message
		return finding
	}
	if said[1] != pool.Name {
		// Another AcceleratorPool selects the same devices, and an answer names one. The devices are fenced.
		if alone {
			finding.Verdict = Absent
			finding.Message = fmt.Sprintf("the API server enforces AcceleratorPool %s where only %s selects devices", said[1], pool.Name)
		}
		return finding
	}
	if said[3] != string(pool.UID) {
		finding.Verdict = Absent
		finding.Message = fmt.Sprintf("the API server enforces another AcceleratorPool of that name: its UID is %s, and not %s", said[3], pool.UID)
		return finding
	}
	if generation, err := strconv.ParseInt(said[2], 10, 64); err != nil || generation < pool.Generation {
		finding.Verdict = Absent
		finding.Message = fmt.Sprintf("the API server enforces generation %s of the AcceleratorPool, the newest is %d",
			said[2], pool.Generation)
	}
	return finding
}

// examplePools are names of pools that the selector selects: its names, and its prefixes with each of the endings, because a
// prefix that ends in a dash or dot is no name by itself. The pools need not exist.
func examplePools(selector *v1alpha1.PoolSelector, endings string) []string {
	names, prefixes := []string(nil), []string{""}
	if selector != nil && len(selector.Names)+len(selector.Prefixes) > 0 {
		names, prefixes = slices.Clone(selector.Names), selector.Prefixes
	}
	for _, prefix := range prefixes {
		for _, ending := range endings {
			names = append(names, prefix+string(ending))
		}
	}
	return slices.DeleteFunc(names, tooLong)
}

// tooLong: a prefix may be as long as a name, and then no pool is named by more than it.
func tooLong(name string) bool { return len(name) > resourcev1.PoolNameMaxLength }

// allocate tries to write an allocation to a canary, which it creates if need be. A merge patch spares the read.
func (p prober) allocate(ctx context.Context, canary, mark string, result resourcev1.DeviceRequestAllocationResult) error {
	claim := p.claim(canary, mark)
	patch, err := json.Marshal(map[string]any{
		"status": map[string]any{"allocation": resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{result}},
		}},
	})
	if err != nil {
		return err
	}
	try := func() error {
		target := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: canary}}
		err := p.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
		if err == nil && target.Annotations[AnnotationProbe] != mark {
			// From before the policies. A patch of the status does not change annotations, so it cannot be adopted here.
			return fmt.Errorf("ResourceClaim %s/%s lacks the annotation %s: %s and is not Berth's: delete it",
				p.namespace, canary, AnnotationProbe, mark)
		}
		return err
	}
	if err = try(); !apierrors.IsNotFound(err) {
		return err
	}
	if err := p.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the canary: %w", err)
	}
	return try()
}

// pin creates a pod of a gang as Berth itself, without the mark, and looks whether it was changed.
func (p prober) pin(ctx context.Context) Finding {
	pod := p.gangPod()
	finding := Finding{Policy: Pin, Verdict: Absent, Message: "a pod of a gang was not given its claim and host in a dry run"}
	if err := p.create(ctx, pod); err != nil {
		if by, _, ok := refusal(err); !ok || by != Pods {
			finding.Verdict = Unclear
			finding.Message = "the dry run was refused: " + err.Error()
		}
		return finding
	}
	if swapped(pod) {
		finding.Verdict, finding.Message = InForce, "a pod of a gang is given its claim and host"
	}
	return finding
}

func swapped(pod *corev1.Pod) bool {
	claim := pod.Spec.ResourceClaims[0]
	gates := pod.Spec.SchedulingGates
	return claim.ResourceClaimTemplateName == nil &&
		claim.ResourceClaimName != nil && *claim.ResourceClaimName == "berth.probe-0" &&
		pod.Spec.NodeSelector[corev1.LabelHostname] == "probe-1" &&
		len(gates) == 1 && gates[0].Name == v1alpha1.GateSeating
}
