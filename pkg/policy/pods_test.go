package policy_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
)

const (
	rankLabel     = "batch.kubernetes.io/job-completion-index"
	jobIndexLabel = "jobset.sigs.k8s.io/job-index"
)

type podChange = func(*corev1.Pod)

// ofGang makes a pod what a Job controller creates from a template that Kueue has written for Berth: one claim, four
// hosts, two pods per claim.
func ofGang(rank int) podChange {
	return func(p *corev1.Pod) {
		p.Labels[v1alpha1.LabelReservation] = "gang-1"
		p.Labels[rankLabel] = fmt.Sprint(rank)
		p.Annotations[v1alpha1.AnnotationContract] = "v1"
		p.Annotations[v1alpha1.AnnotationHosts] = "h0,h1,h2,h3"
		template("tpu")(p)
		p.Annotations["claim.berth.dev/tpu"] = "berth.gang-1-tpu/2"
	}
}

func template(name string) podChange {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: ptr.To("tpu-4x4")})
		c := &p.Spec.Containers[0]
		c.Resources.Claims = append(c.Resources.Claims, corev1.ResourceClaim{Name: name})
	}
}

func named(name, claim string) podChange {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: ptr.To(claim)})
		c := &p.Spec.Containers[0]
		c.Resources.Claims = append(c.Resources.Claims, corev1.ResourceClaim{Name: name})
	}
}

func annotate(key, value string) podChange {
	return func(p *corev1.Pod) {
		if value == "" {
			delete(p.Annotations, key)
			return
		}
		p.Annotations[key] = value
	}
}

func label(key, value string) podChange {
	return func(p *corev1.Pod) {
		if value == "" {
			delete(p.Labels, key)
			return
		}
		p.Labels[key] = value
	}
}

// seated makes a pod what berth-pin makes of rank 1, without its help.
func seated(p *corev1.Pod) {
	p.Labels[v1alpha1.LabelReservation] = "gang-1"
	p.Labels[rankLabel] = "1"
	p.Annotations[v1alpha1.AnnotationContract] = "v1"
	p.Annotations["claim.berth.dev/tpu"] = "berth.gang-1-tpu/2"
	named("tpu", "berth.gang-1-tpu-0")(p)
	p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "h1"}
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1alpha1.GateSeating}}
}

func TestPodsOfAGangArePinned(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	many := func(n int) podChange {
		return func(p *corev1.Pod) {
			template("unmanaged")(p)
			for i := 1; i < n; i++ {
				template(fmt.Sprintf("c%d", i))(p)
				p.Annotations[fmt.Sprintf("claim.berth.dev/c%d", i)] = fmt.Sprintf("berth.gang-1-c%d/1", i)
			}
		}
	}
	for _, tc := range []struct {
		name   string
		change []podChange
		host   string
		claims string
	}{
		{"rank-0", []podChange{ofGang(0)}, "h0", "tpu=berth.gang-1-tpu-0"},
		{"rank-1", []podChange{ofGang(1)}, "h1", "tpu=berth.gang-1-tpu-0"},
		{"rank-2", []podChange{ofGang(2)}, "h2", "tpu=berth.gang-1-tpu-1"},
		{"rank-3", []podChange{ofGang(3)}, "h3", "tpu=berth.gang-1-tpu-1"},
		{"one-pod-per-claim", []podChange{ofGang(3), annotate("claim.berth.dev/tpu", "berth.gang-1.tpu/1")}, "h3", "tpu=berth.gang-1.tpu-3"},
		{"jobset", []podChange{ofGang(1), annotate("berth.dev/pods-per-job", "2"), label(jobIndexLabel, "1")}, "h3", "tpu=berth.gang-1-tpu-1"},
		{"job-index-without-pods-per-job-means-nothing", []podChange{ofGang(1), label(jobIndexLabel, "1")}, "h1", "tpu=berth.gang-1-tpu-0"},
		{"other-claims-untouched", []podChange{template("scratch"), ofGang(1), named("nic", "nic-1")}, "h1",
			"scratch<tpu-4x4 tpu=berth.gang-1-tpu-0 nic=nic-1"},
		{"eight-claims", []podChange{ofGang(1), many(8)}, "h1", "tpu=berth.gang-1-tpu-0 unmanaged<tpu-4x4 c1=berth.gang-1-c1-1 " +
			"c2=berth.gang-1-c2-1 c3=berth.gang-1-c3-1 c4=berth.gang-1-c4-1 c5=berth.gang-1-c5-1 c6=berth.gang-1-c6-1 c7=berth.gang-1-c7-1"},
		{"node-selector-kept", []podChange{ofGang(2), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "a"} }}, "h2",
			"tpu=berth.gang-1-tpu-1"},
		{"same-host-selected", []podChange{ofGang(2), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "h2"} }},
			"h2", "tpu=berth.gang-1-tpu-1"},
		{"gates-kept", []podChange{ofGang(2), func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
		}}, "h2", "tpu=berth.gang-1-tpu-1"},
		{"already-gated", []podChange{ofGang(2), func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1alpha1.GateSeating}}
		}}, "h2", "tpu=berth.gang-1-tpu-1"},
		{"slices-note-kept", []podChange{ofGang(0), annotate(v1alpha1.AnnotationSlices, "2")}, "h0", "tpu=berth.gang-1-tpu-0"},
		{"interconnect-note-kept", []podChange{ofGang(0), annotate(v1alpha1.AnnotationInterconnect, "required")}, "h0", "tpu=berth.gang-1-tpu-0"},
		{"three-thousand-hosts", []podChange{ofGang(2999), annotate(v1alpha1.AnnotationHosts, longHosts(3000))},
			"a-host-with-a-name-as-long-as-clouds-give-them-2999.example", "tpu=berth.gang-1-tpu-1499"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := pod(ns, tc.name, tc.change...)
			gates, selectors := len(p.Spec.SchedulingGates), len(p.Spec.NodeSelector)
			must(t, w.as(t, jobCtl).Create(t.Context(), p))
			if got := p.Spec.NodeSelector[corev1.LabelHostname]; got != tc.host {
				t.Errorf("host %q, want %q", got, tc.host)
			}
			var claims []string
			for _, c := range p.Spec.ResourceClaims {
				if c.ResourceClaimName != nil {
					claims = append(claims, c.Name+"="+*c.ResourceClaimName)
				} else {
					claims = append(claims, c.Name+"<"+*c.ResourceClaimTemplateName)
				}
			}
			if got := strings.Join(claims, " "); got != tc.claims {
				t.Errorf("claims %s\nwant   %s", got, tc.claims)
			}
			ours := 0
			for _, g := range p.Spec.SchedulingGates {
				if g.Name == v1alpha1.GateSeating {
					ours++
				}
			}
			if ours != 1 || len(p.Spec.SchedulingGates) < gates || len(p.Spec.NodeSelector) < selectors {
				t.Errorf("gates %v, selector %v", p.Spec.SchedulingGates, p.Spec.NodeSelector)
			}
			if _, has := p.Annotations[v1alpha1.AnnotationHosts]; has {
				t.Error("the list of hosts is still there")
			}
		})
	}
}

func longHosts(n int) string {
	hosts := make([]string, n)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("a-host-with-a-name-as-long-as-clouds-give-them-%d.example", i)
	}
	return strings.Join(hosts, ",")
}

// Scenarios 31 and 39.
func TestPodsOutsideTheContractAreRefused(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	nine := func(p *corev1.Pod) {
		for i := range 8 {
			template(fmt.Sprintf("c%d", i))(p)
			p.Annotations[fmt.Sprintf("claim.berth.dev/c%d", i)] = "berth.c/1"
		}
	}
	const (
		heldMsg = "ResourceClaim berth.gang-1-tpu-0 is held by Berth for a gang and only the pods of that gang may use it. Name a " +
			"ResourceClaimTemplate, and submit the job to a Kueue queue that has Berth's admission check."
		joinMsg = " may not create pods of a gang. Remove the label berth.dev/reservation: it is put on the pods of an admitted " +
			"job by its controller. (A controller gets the right from ClusterRole berth-gang-member.)"
		malformed = `the annotation claim.berth.dev/tpu is "%s" and must be <prefix>/<pods per claim>, with a prefix that begins ` +
			`with "berth." and 1 to 255 pods.`
	)
	for i, tc := range []struct {
		user   string
		change []podChange
		want   string
	}{
		{editor, []podChange{named("tpu", "berth.gang-1-tpu-0")}, heldMsg},
		{carla, []podChange{named("tpu", "berth.gang-1-tpu-0")}, heldMsg},
		{jobCtl, []podChange{named("tpu", "berth.gang-1-tpu-0")}, heldMsg},
		{editor, []podChange{ofGang(1)}, editor + joinMsg},
		{editor, []podChange{seated}, editor + joinMsg},
		{editor, []podChange{label(v1alpha1.LabelReservation, "gang-1")}, editor + joinMsg},
		{jobCtl, []podChange{ofGang(1), annotate(v1alpha1.AnnotationContract, "")},
			"the label berth.dev/reservation needs the annotation berth.dev/contract. Remove the label: Kueue sets both when it admits the job."},
		{jobCtl, []podChange{ofGang(1), annotate(v1alpha1.AnnotationContract, "v2")},
			"the annotation berth.dev/contract is v2 and the policies installed here know v1. Install the policies of the same release as berth-controller."},
		{jobCtl, []podChange{ofGang(1), label(rankLabel, "")},
			"the pod has no label batch.kubernetes.io/job-completion-index, so Berth cannot tell its rank. Use an Indexed Job."},
		{jobCtl, []podChange{ofGang(1), label(rankLabel, "one")}, `the rank of the pod cannot be told from completion index "one".`},
		{jobCtl, []podChange{ofGang(1), label(rankLabel, "12345678901234567890")},
			`the rank of the pod cannot be told from completion index "12345678901234567890".`},
		{jobCtl, []podChange{ofGang(1), annotate("berth.dev/pods-per-job", "2")},
			"the pod has no label jobset.sigs.k8s.io/job-index, so Berth cannot tell its rank."},
		{jobCtl, []podChange{ofGang(2), annotate("berth.dev/pods-per-job", "2"), label(jobIndexLabel, "0")},
			`the rank of the pod cannot be told from completion index "2", job index "0" and "2" pods per job.`},
		{jobCtl, []podChange{ofGang(4)}, "the pod has rank 4 and the gang has 4 hosts."},
		{jobCtl, []podChange{ofGang(1), annotate("claim.berth.dev/tpu", "")},
			"the label berth.dev/reservation needs an annotation claim.berth.dev/<claim> for each claim that Berth manages."},
		{jobCtl, []podChange{ofGang(1), nine}, "the pod has 9 claims that Berth manages; 8 are possible."},
		{jobCtl, []podChange{ofGang(1), annotate("claim.berth.dev/tpu", "mine/2")}, fmt.Sprintf(malformed, "mine/2")},
		{jobCtl, []podChange{ofGang(1), annotate("claim.berth.dev/tpu", "berth.x/0")}, fmt.Sprintf(malformed, "berth.x/0")},
		{jobCtl, []podChange{ofGang(1), annotate("claim.berth.dev/tpu", "berth.x/256")}, fmt.Sprintf(malformed, "berth.x/256")},
		{jobCtl, []podChange{ofGang(1), annotate("claim.berth.dev/tpu", "berth.x")}, fmt.Sprintf(malformed, "berth.x")},
		{jobCtl, []podChange{ofGang(1), annotate("claim.berth.dev/gone", "berth.x/1")},
			"the annotation claim.berth.dev/gone is for a claim that the pod does not have."},
		{jobCtl, []podChange{ofGang(1), annotate(v1alpha1.AnnotationHosts, "h0, h1,h2,h3")},
			"the pod was not given its claim and host by MutatingAdmissionPolicy berth-pin. It is not in force, or the annotation " +
				"berth.dev/hosts holds no host name for rank 1."},
		{jobCtl, []podChange{ofGang(1), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "h3"} }},
			"the pod selects host h3 and its rank 1 is reserved on h1. Remove kubernetes.io/hostname from its nodeSelector."},
		{jobCtl, []podChange{ofGang(1), func(p *corev1.Pod) {
			p.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "tpu", ResourceClaimName: ptr.To("berth.gang-1-tpu-0")}
		}}, "a claim that Berth manages must come from a ResourceClaimTemplate, and tpu names a ResourceClaim."},
		// Without the list of hosts berth-pin has no part in it.
		{jobCtl, []podChange{ofGang(1), annotate(v1alpha1.AnnotationHosts, "")},
			"claim tpu of rank 1 is not the one that the annotation claim.berth.dev/tpu gives it."},
		{jobCtl, []podChange{seated, label(rankLabel, "2")}, "claim tpu of rank 2 is not the one that the annotation claim.berth.dev/tpu gives it."},
		{jobCtl, []podChange{seated, named("more", "berth.gang-2-tpu-0")},
			"claim more names ResourceClaim berth.gang-2-tpu-0 without an annotation claim.berth.dev/more."},
		{jobCtl, []podChange{seated, func(p *corev1.Pod) { p.Spec.NodeSelector = nil }},
			"the pod is not bound to its host by a nodeSelector on kubernetes.io/hostname."},
		{carla, []podChange{seated, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }}, "the pod lacks the scheduling gate berth.dev/seating."},
		{jobCtl, []podChange{seated}, ""},
	} {
		t.Run(fmt.Sprintf("%02d %s", i, tc.user), func(t *testing.T) {
			want := tc.want
			if want != "" {
				want = "pod of a gang refused: " + want
			}
			expect(t, w.as(t, tc.user).Create(t.Context(), pod(ns, fmt.Sprintf("pod-%d", i), tc.change...)), policy.Pods, want)
		})
	}
	t.Run("a pod that is already on a node is refused by the API server", func(t *testing.T) {
		err := w.as(t, jobCtl).Create(t.Context(), pod(ns, "placed", ofGang(1), func(p *corev1.Pod) { p.Spec.NodeName = "h1" }))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "until all schedulingGates have been cleared") {
			t.Errorf("got %v", err)
		}
	})
}

func TestOtherPodsAreUnaffected(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	for i, change := range []podChange{
		func(*corev1.Pod) {},
		template("tpu"),
		named("tpu", "my-claim"),
		named("tpu", "berth"),
		annotate(v1alpha1.AnnotationSlices, "2"),
		annotate(v1alpha1.AnnotationInterconnect, "required"),
		// Without the label these mean nothing.
		annotate(v1alpha1.AnnotationHosts, "h0"),
		annotate("claim.berth.dev/tpu", "berth.x/1"),
		label("berth.dev/team", "a"),
		func(p *corev1.Pod) { p.Spec.NodeName = "h1" },
		func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1alpha1.GateSeating}} },
	} {
		p := pod(ns, fmt.Sprintf("pod-%d", i), change)
		before := p.Spec.DeepCopy()
		must(t, w.as(t, editor).Create(t.Context(), p))
		if len(p.Spec.SchedulingGates) != len(before.SchedulingGates) || len(p.Spec.NodeSelector) != 0 {
			t.Errorf("pod %d was changed: %+v", i, p.Spec)
		}
		p.Labels, p.Spec.SchedulingGates = map[string]string{"app": "x"}, nil
		must(t, w.as(t, editor).Update(t.Context(), p))
		must(t, w.as(t, editor).Delete(t.Context(), p))
	}
}

func TestPodsOfAGangStayAsTheyAre(t *testing.T) {
	w := fenced(t)
	ctx := t.Context()
	ns := w.namespace(t)
	p := pod(ns, "train-1", ofGang(1))
	w.create(t, jobCtl, p)
	byBerth := func(what string) string {
		return "Pod " + ns + "/train-1 belongs to a gang: " + what + " is changed by Berth alone. Leave it as it is, or delete the pod."
	}
	ungate := func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }
	gateMsg := "Pod " + ns + "/train-1 belongs to a gang: the scheduling gate berth.dev/seating is removed by Berth when the pod has its seat."
	for i, tc := range []struct {
		user   string
		change podChange
		want   string
	}{
		{editor, label("app", "x"), ""},
		{editor, annotate("note", "x"), ""},
		{gc, func(p *corev1.Pod) { p.OwnerReferences = nil }, ""},
		{carla, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/x"} }, ""},
		{carla, func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		}, ""},
		{editor, label(v1alpha1.LabelReservation, ""), byBerth("label berth.dev/reservation")},
		{carla, label(v1alpha1.LabelReservation, "gang-2"), byBerth("label berth.dev/reservation")},
		{editor, label(rankLabel, "2"), byBerth("label batch.kubernetes.io/job-completion-index")},
		{editor, label(jobIndexLabel, "2"), byBerth("label jobset.sigs.k8s.io/job-index")},
		{editor, annotate(v1alpha1.AnnotationContract, ""), byBerth("annotation berth.dev/contract")},
		{editor, annotate(v1alpha1.AnnotationHosts, "h9"), byBerth("annotation berth.dev/hosts")},
		{editor, annotate("claim.berth.dev/tpu", "berth.other/1"), byBerth("annotation claim.berth.dev/tpu")},
		{editor, ungate, gateMsg},
		{carla, ungate, gateMsg},
	} {
		t.Run(fmt.Sprintf("%02d %s", i, tc.user), func(t *testing.T) {
			changed := p.DeepCopy()
			tc.change(changed)
			changed.ResourceVersion = ""
			expect(t, w.as(t, tc.user).Update(t.Context(), changed, client.DryRunAll), policy.Pods, tc.want)
		})
	}
	t.Run("no pod becomes one of a gang later", func(t *testing.T) {
		plain := pod(ns, "plain")
		w.create(t, editor, plain)
		plain.Labels = map[string]string{v1alpha1.LabelReservation: "gang-1"}
		expect(t, w.as(t, carla).Update(t.Context(), plain), policy.Pods, strings.Replace(byBerth("label berth.dev/reservation"), "train-1", "plain", 1))
	})
	t.Run("subresources pass", func(t *testing.T) {
		running := p.DeepCopy()
		running.Status.Phase = corev1.PodPending
		running.Status.Conditions = append(running.Status.Conditions, corev1.PodCondition{Type: "Example", Status: corev1.ConditionTrue})
		must(t, w.as(t, scheduler).Status().Update(ctx, running))
		debug := running.DeepCopy()
		debug.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", Image: "debug", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}}}
		must(t, w.as(t, carla).SubResource("ephemeralcontainers").Update(ctx, debug))
		must(t, w.admin.SubResource("resize").Update(ctx, debug))
	})
	t.Run("Berth seats it", func(t *testing.T) {
		must(t, w.berth.Patch(ctx, pod(ns, "train-1"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"schedulingGates":null}}`))))
	})
	t.Run("deletion is for everyone", func(t *testing.T) { must(t, w.as(t, editor).Delete(t.Context(), p)) })
}
