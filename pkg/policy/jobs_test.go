package policy_test

import (
	"context"
	"maps"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
)

func job(namespace, name string, change ...func(*batchv1.Job)) *batchv1.Job {
	template := pod("", "", template("tpu"))
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true), CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Completions: ptr.To[int32](4), Parallelism: ptr.To[int32](4),
			Template: corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: template.Spec},
		},
	}
	for _, f := range change {
		f(j)
	}
	return j
}

// admitted writes into a template what Kueue writes for Berth: the hosts of tpu-4x4-00, one claim for all.
func admitted(j *batchv1.Job) {
	t := &j.Spec.Template
	t.Labels = maps.Clone(t.Labels) // the API server has put the selector's labels there
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Labels[v1alpha1.LabelReservation] = "gang-1"
	t.Annotations = map[string]string{
		v1alpha1.AnnotationContract: "v1",
		v1alpha1.AnnotationHosts:    "node-0,node-1,node-4,node-5",
		"claim.berth.dev/tpu":       "berth.gang-1-tpu/4",
	}
}

func ownedBy(apiVersion, kind string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "o", UID: "o", Controller: ptr.To(true)}}
	}
}

// Scenario 33.
func TestJobsAreNotCreatedWithTheKeysOfAnother(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	refused := func(name, keys string) string {
		return "Job " + ns + "/" + name + " cannot be created with the keys of another Job's reservation. Remove from " +
			"spec.template.metadata: " + keys + ". Kueue sets them when it admits the Job."
	}
	const all = "label berth.dev/reservation, annotation berth.dev/contract, annotation berth.dev/hosts, annotation claim.berth.dev/tpu"
	noted := func(key string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Spec.Template.Annotations = map[string]string{key: "1"} }
	}
	for _, tc := range []struct {
		name, user string
		change     []func(*batchv1.Job)
		keys       string // empty: allowed
	}{
		{"plain", editor, nil, ""},
		{"asks-for-slices", editor, []func(*batchv1.Job){noted(v1alpha1.AnnotationSlices)}, ""},
		{"asks-for-an-interconnect", editor, []func(*batchv1.Job){noted(v1alpha1.AnnotationInterconnect)}, ""},
		{"copied", editor, []func(*batchv1.Job){admitted}, all},
		{"copied-by-admin", carla, []func(*batchv1.Job){admitted}, all},
		{"copied-with-kueues-key", editor, []func(*batchv1.Job){admitted, func(j *batchv1.Job) {
			j.Spec.Template.Annotations["kueue.x-k8s.io/workload"] = "job-train-1"
		}}, all + ", annotation kueue.x-k8s.io/workload"},
		{"kueues-key-alone", editor, []func(*batchv1.Job){noted("kueue.x-k8s.io/workload")}, ""},
		{"one-key", editor, []func(*batchv1.Job){noted(v1alpha1.AnnotationPodsPerJob)}, "annotation berth.dev/pods-per-job"},
		{"copied-child", editor, []func(*batchv1.Job){admitted, ownedBy("jobset.x-k8s.io/v1alpha2", "JobSet")}, all},
		{"child", jobSetCtl, []func(*batchv1.Job){admitted, ownedBy("jobset.x-k8s.io/v1alpha2", "JobSet")}, ""},
		{"child-of-another-kind", jobSetCtl, []func(*batchv1.Job){admitted, ownedBy("batch/v1", "CronJob")}, all},
		{"child-of-another-group", jobSetCtl, []func(*batchv1.Job){admitted, ownedBy("example.com/v1", "JobSet")}, all},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := ""
			if tc.keys != "" {
				want = refused(tc.name, tc.keys)
			}
			expect(t, w.as(t, tc.user).Create(t.Context(), job(ns, tc.name, tc.change...)), policy.JobKeys, want)
		})
	}
	t.Run("Kueue writes the keys by update", func(t *testing.T) {
		j := job(ns, "kueue")
		w.create(t, editor, j)
		admitted(j)
		must(t, w.admin.Update(t.Context(), j))
	})
}

const jobSetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jobsets.jobset.x-k8s.io, annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/jobset"}}
spec:
  group: jobset.x-k8s.io
  names: {kind: JobSet, plural: jobsets, singular: jobset}
  scope: Namespaced
  versions:
  - name: v1alpha2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestJobSetsAreNotCreatedWithTheKeysOfAnother(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	must(t, w.ApplyYAML(t.Context(), jobSetCRD))
	t.Cleanup(func() {
		must(t, w.Client().Discovery().RESTClient().Delete().
			AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/jobsets.jobset.x-k8s.io").Do(context.Background()).Error())
	})
	jobSet := func(name string, template map[string]any) *unstructured.Unstructured {
		s := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
			"spec": map[string]any{"replicatedJobs": []any{
				map[string]any{"name": "driver", "template": map[string]any{"spec": map[string]any{"template": map[string]any{}}}},
				map[string]any{"name": "workers", "template": map[string]any{"spec": map[string]any{"template": template}}},
			}},
		}}
		s.SetNamespace(ns)
		s.SetName(name)
		return s
	}
	c := w.admin
	must(t, c.Create(t.Context(), jobSet("plain", map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{v1alpha1.AnnotationSlices: "2", v1alpha1.AnnotationInterconnect: "required"}}})))
	copied := jobSet("copied", map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.LabelReservation: "gang-1"}}})
	expect(t, c.Create(t.Context(), copied), policy.JobSetKeys, "JobSet "+ns+"/copied cannot be created with the keys of another "+
		"JobSet's reservation. Remove from the pod template of replicated job workers: label berth.dev/reservation, annotations "+
		"berth.dev/contract, berth.dev/hosts, berth.dev/pods-per-job, claim.berth.dev/* and kueue.x-k8s.io/workload. Kueue sets them when it "+
		"admits the JobSet.")

	t.Log("the probe looks at JobSets as soon as there are any")
	found := false
	for _, f := range policy.Probe(t.Context(), newClient(t, w.berthConfig(t)), "berth-system", nil).Findings {
		if f.Policy == policy.JobSetKeys {
			found = true
			if f.Verdict != policy.InForce {
				t.Error(f)
			}
		}
	}
	if !found {
		t.Error("no finding for JobSets")
	}
}
