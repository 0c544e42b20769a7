package jobs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

func TestOwnerOf(t *testing.T) {
	for _, row := range []struct {
		name   string
		job    func(*batchv1.Job)
		change func(kueuetest.Workload)
		want   string
	}{
		{name: "an indexed Job"},
		{"no owner", nil, func(w kueuetest.Workload) { w.OwnerReferences = nil }, "Unsupported: the Workload has no owner, so nothing says which pods are its own"},
		{"an owner that does not control it", nil, func(w kueuetest.Workload) { w.OwnerReferences[0].Controller = nil }, "Unsupported: the Workload has no owner, so nothing says which pods are its own"},
		{"another kind", nil, func(w kueuetest.Workload) {
			w.OwnerReferences[0].Kind, w.OwnerReferences[0].APIVersion = "RayJob", "ray.io/v1"
		}, "Unsupported: pods of kind RayJob (ray.io/v1) have no rank that Berth knows: use a batch/v1 Job"},
		{"a Job of another group", nil, func(w kueuetest.Workload) { w.OwnerReferences[0].APIVersion = "batch.volcano.sh/v1alpha1" }, "Unsupported: pods of kind Job (batch.volcano.sh/v1alpha1) have no rank that Berth knows: use a batch/v1 Job"},
		{"a Job that is gone", nil, func(w kueuetest.Workload) { w.OwnerReferences[0].Name = "other" }, "ClaimMissing: Job other does not exist"},
		{"its successor of the same name", func(j *batchv1.Job) { j.UID = "successor" }, nil, "ClaimMissing: Job train does not exist"},
		{"an elastic Job", func(j *batchv1.Job) { j.Annotations = map[string]string{jobs.ElasticAnnotation: "true"} }, nil, "Unsupported: an elastic Job changes its number of pods while it holds a slice: remove the annotation kueue.x-k8s.io/elastic-job"},
		{"a Job that is not elastic", func(j *batchv1.Job) { j.Annotations = map[string]string{jobs.ElasticAnnotation: "false"} }, nil, ""},
		{"no ranks", func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion) }, nil, "Unsupported: the pods have no rank: set spec.completionMode to Indexed"},
		{"no completion mode", func(j *batchv1.Job) { j.Spec.CompletionMode = nil }, nil, "Unsupported: the pods have no rank: set spec.completionMode to Indexed"},
		{"more completions than pods at once", func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](8) }, nil, "CountMismatch: completions is 8 and parallelism 4: a gang runs all of its ranks at once, so they must be equal"},
		{"no completions", func(j *batchv1.Job) { j.Spec.Completions = nil }, nil, "CountMismatch: completions is 1 and parallelism 4: a gang runs all of its ranks at once, so they must be equal"},
	} {
		t.Run(row.name, func(t *testing.T) {
			job := kueuetest.NewJob("train", "tpu-4x4", 4)
			w := kueuetest.NewWorkload(job)
			if row.job != nil {
				row.job(job)
			}
			if row.change != nil {
				row.change(w)
			}
			owner, refusal := jobs.OwnerOf(w.Workload, func(namespace, name string) *batchv1.Job {
				if namespace == job.Namespace && name == job.Name {
					return job
				}
				return nil
			})
			got := ""
			if refusal != nil {
				got = refusal.Error()
			}
			if got != row.want {
				t.Errorf("\n got %s\nwant %s", got, row.want)
			}
			if want := (berth.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "train"}); row.want == "" && owner != want {
				t.Errorf("owner %+v", owner)
			}
		})
	}
}

func TestRank(t *testing.T) {
	for _, row := range []struct {
		name                string
		labels, annotations map[string]string
		rank                int
		ranked              bool
	}{
		{"no label", nil, nil, 0, false},
		{"index", map[string]string{batchv1.JobCompletionIndexAnnotation: "7"}, nil, 7, true},
		{"the annotation alone is no label", nil, map[string]string{batchv1.JobCompletionIndexAnnotation: "7"}, 0, false},
		{"no number", map[string]string{batchv1.JobCompletionIndexAnnotation: "x"}, nil, 0, false},
		{"below zero", map[string]string{batchv1.JobCompletionIndexAnnotation: "-1"}, nil, 0, false},
		{"too large", map[string]string{batchv1.JobCompletionIndexAnnotation: "99999999999999999999"}, nil, 0, false},
		{"in a JobSet", map[string]string{batchv1.JobCompletionIndexAnnotation: "3", "jobset.sigs.k8s.io/job-index": "2"}, map[string]string{berth.AnnotationPodsPerJob: "4"}, 11, true},
		{"a JobSet's label alone", map[string]string{batchv1.JobCompletionIndexAnnotation: "3", "jobset.sigs.k8s.io/job-index": "2"}, nil, 3, true},
		{"in a JobSet without its label", map[string]string{batchv1.JobCompletionIndexAnnotation: "3"}, map[string]string{berth.AnnotationPodsPerJob: "4"}, 0, false},
		{"in a JobSet, job below zero", map[string]string{batchv1.JobCompletionIndexAnnotation: "3", "jobset.sigs.k8s.io/job-index": "-2"}, map[string]string{berth.AnnotationPodsPerJob: "4"}, 0, false},
		{"pods per job is no number", map[string]string{batchv1.JobCompletionIndexAnnotation: "3", "jobset.sigs.k8s.io/job-index": "2"}, map[string]string{berth.AnnotationPodsPerJob: "many"}, 0, false},
		{"no pods per job", map[string]string{batchv1.JobCompletionIndexAnnotation: "3", "jobset.sigs.k8s.io/job-index": "2"}, map[string]string{berth.AnnotationPodsPerJob: "0"}, 0, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			rank, ranked := jobs.Rank(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: row.labels, Annotations: row.annotations}})
			if rank != row.rank || ranked != row.ranked {
				t.Errorf("rank %d, %v", rank, ranked)
			}
		})
	}
}

func reservation() *berth.GangReservation {
	job := kueuetest.NewJob("train", "tpu-4x4", 4)
	res := kueuetest.NewReservation("res", kueuetest.NewWorkload(job), job, "tpu-4x4-00", "h0", "h1", "h4", "h5")
	// A second claim whose device is of one host, so every pod has one of its own.
	nic := berth.ReservedClaim{PodClaim: "nic", Prefix: "berth.res.main.nic", PodsPerClaim: 1}
	for i, h := range res.Spec.PodSets[0].Hosts {
		nic.Devices = append(nic.Devices, berth.ReservedDevice{Instance: int32(i), Request: "nic", Device: "nic-" + h, Hosts: []string{h}})
	}
	res.Spec.PodSets[0].Claims = append(res.Spec.PodSets[0].Claims, nic)
	return res
}

func TestSeatOf(t *testing.T) {
	for _, row := range []struct {
		name   string
		rank   int
		change func(*corev1.Pod)
		want   string
	}{
		{"first", 0, nil, "main 0 [berth.res.main.tpu-0 berth.res.main.nic-0]"},
		{"last", 3, nil, "main 3 [berth.res.main.tpu-0 berth.res.main.nic-3]"},
		{"more claims than the reservation knows", 1, func(p *corev1.Pod) {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "disk", ResourceClaimName: ptr.To("x")})
		}, "main 1 [berth.res.main.tpu-0 berth.res.main.nic-1]"},
		{"no owner", 0, func(p *corev1.Pod) { p.OwnerReferences = nil }, "pod train-0 is not controlled by Job train"},
		{"an owner that does not control it", 0, func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, "pod train-0 is not controlled by Job train"},
		{"another's", 0, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, "pod train-0 is not controlled by Job train"},
		{"no rank", 0, func(p *corev1.Pod) { delete(p.Labels, batchv1.JobCompletionIndexAnnotation) }, "pod train-0 carries no rank"},
		{"a rank that the gang has not", 0, func(p *corev1.Pod) { p.Labels[batchv1.JobCompletionIndexAnnotation] = "4" }, "pod train-0 of rank 4 is not pinned as the reservation says"},
		{"another host", 0, func(p *corev1.Pod) { p.Spec.NodeSelector[corev1.LabelHostname] = "h1" }, "pod train-0 of rank 0 is not pinned as the reservation says"},
		{"no host", 0, func(p *corev1.Pod) { p.Spec.NodeSelector = nil }, "pod train-0 of rank 0 is not pinned as the reservation says"},
		{"another claim", 0, func(p *corev1.Pod) { p.Spec.ResourceClaims[1].ResourceClaimName = ptr.To("berth.res.main.nic-1") }, "pod train-0 of rank 0 is not pinned as the reservation says"},
		{"a claim is missing", 0, func(p *corev1.Pod) { p.Spec.ResourceClaims = p.Spec.ResourceClaims[:1] }, "pod train-0 of rank 0 is not pinned as the reservation says"},
		{"the template was not swapped", 0, func(p *corev1.Pod) {
			p.Spec.ResourceClaims[0].ResourceClaimName, p.Spec.ResourceClaims[0].ResourceClaimTemplateName = nil, ptr.To("tpu-4x4")
		}, "pod train-0 of rank 0 is not pinned as the reservation says"},
	} {
		t.Run(row.name, func(t *testing.T) {
			res := reservation()
			pod := kueuetest.NewPod(res, row.rank)
			if row.change != nil {
				row.change(pod)
			}
			var got string
			seat, err := jobs.SeatOf(res, pod)
			if err != nil {
				got = err.Error()
			} else {
				got = seat.PodSet + " " + pod.Labels[batchv1.JobCompletionIndexAnnotation] + " [" + strings.Join(seat.Claims, " ") + "]"
			}
			if got != row.want {
				t.Errorf("\n got %s\nwant %s", got, row.want)
			}
		})
	}
}

// A reservation without an owner, as one that is read from the story of a claim, has no pods of its own.
func TestNobodyIsTheOwnerOfAPod(t *testing.T) {
	res := reservation()
	pod := kueuetest.NewPod(res, 0)
	res.Spec.Owner.UID, pod.OwnerReferences[0].UID = "", ""
	if jobs.Controls(res.Spec.Owner, pod) {
		t.Error("a pod is controlled by nobody")
	}
}

func TestSeatOfSeveralPodSets(t *testing.T) {
	res := reservation()
	other := *res.Spec.PodSets[0].DeepCopy()
	other.Name, other.Hosts = "other", []string{"h8", "h9", "h12", "h13"}
	for i := range other.Claims {
		other.Claims[i].Prefix = "berth.res.other-" + other.Claims[i].PodClaim
	}
	res.Spec.PodSets = append(res.Spec.PodSets, other)
	pod := kueuetest.NewPod(res, 2)
	second := res.DeepCopy()
	second.Spec.PodSets = second.Spec.PodSets[1:]
	for want, p := range map[string]*corev1.Pod{"main": pod, "other": kueuetest.NewPod(second, 2)} {
		seat, err := jobs.SeatOf(res, p)
		if err != nil || seat.PodSet != want || seat.Rank != 2 {
			t.Errorf("seat %+v, error %v, want pod set %s", seat, err, want)
		}
	}
}

// Objects that no API server would have accepted do not bring a reader down.
func TestDamagedReservation(t *testing.T) {
	res := reservation()
	for i := range res.Spec.PodSets[0].Claims {
		res.Spec.PodSets[0].Claims[i].PodsPerClaim = 0
	}
	if _, err := jobs.SeatOf(res, kueuetest.NewPod(reservation(), 1)); err == nil {
		t.Error("seated")
	}
	if diff := cmp.Diff([]string{"", "", "", ""}, jobs.NodesOf(res.Spec.PodSets[0])); diff != "" {
		t.Error(diff)
	}
	res.Spec.PodSets[0].Claims[0].PodsPerClaim, res.Spec.PodSets[0].Claims[0].Devices[0].Instance = 4, -1
	jobs.NodesOf(res.Spec.PodSets[0])
}

func TestNodesOf(t *testing.T) {
	device := func(instance int32, hosts ...string) berth.ReservedDevice {
		return berth.ReservedDevice{Instance: instance, Hosts: hosts}
	}
	claim := func(per int32, devices ...berth.ReservedDevice) berth.ReservedClaim {
		return berth.ReservedClaim{PodsPerClaim: per, Devices: devices}
	}
	labels := []string{"a", "b", "c", "d"}
	for _, row := range []struct {
		name   string
		claims []berth.ReservedClaim
		want   []string
	}{
		{"one slice", []berth.ReservedClaim{claim(4, device(0, "n0", "n1", "n2", "n3"))}, []string{"n0", "n1", "n2", "n3"}},
		{"two slices", []berth.ReservedClaim{claim(2, device(1, "n2", "n3"), device(0, "n0", "n1"))}, []string{"n0", "n1", "n2", "n3"}},
		{"a device for each", []berth.ReservedClaim{claim(1, device(0, "n0"), device(1, "n1"), device(2, "n2"), device(3, "n3"))}, []string{"n0", "n1", "n2", "n3"}},
		{"two devices for each", []berth.ReservedClaim{claim(1, device(0, "n0"), device(0, "n0"), device(1, "n1"), device(1, "n1"), device(2, "n2"), device(3, "n3"))}, []string{"n0", "n1", "n2", "n3"}},
		{"two claims", []berth.ReservedClaim{claim(4, device(0, "n0", "n1", "n2", "n3")), claim(1, device(0, "n0"), device(1, "n1"))}, []string{"n0", "n1", "n2", "n3"}},
		{"the second claim knows more", []berth.ReservedClaim{claim(1, device(0, "n0")), claim(2, device(0, "n0", "n1"), device(1, "n2", "n3"))}, []string{"n0", "n1", "n2", "n3"}},
		{"hosts are not known", []berth.ReservedClaim{claim(4, device(0))}, []string{"", "", "", ""}},
		{"fewer hosts than pods", []berth.ReservedClaim{claim(4, device(0, "n0", "n1"))}, []string{"n0", "n1", "", ""}},
		{"more hosts than pods", []berth.ReservedClaim{claim(2, device(0, "n0", "n1", "x"), device(1, "n2", "n3", "y"))}, []string{"n0", "n1", "n2", "n3"}},
		{"an instance too many", []berth.ReservedClaim{claim(2, device(0, "n0", "n1"), device(2, "x", "y"))}, []string{"n0", "n1", "", ""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, jobs.NodesOf(berth.ReservedPodSet{Hosts: labels, Claims: row.claims})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEndedAndGated(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]bool{
		"": false, corev1.PodPending: false, corev1.PodRunning: false, corev1.PodUnknown: false, corev1.PodSucceeded: true, corev1.PodFailed: true,
	} {
		if got := jobs.Ended(&corev1.Pod{Status: corev1.PodStatus{Phase: phase}}); got != want {
			t.Errorf("phase %q: ended %v", phase, got)
		}
	}
	pod := kueuetest.NewPod(reservation(), 0)
	if !jobs.Gated(pod) {
		t.Error("not gated")
	}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "other"}}
	if jobs.Gated(pod) {
		t.Error("another's gate is taken for ours")
	}
}
