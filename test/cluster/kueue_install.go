package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// kueueInstall puts Kueue's manifests, as they lie in its module, into the cluster. Where the manifests point at a
// service inside the cluster, they are made to point at the process on loopback.
type kueueInstall struct {
	cluster    *Cluster
	dir        string // of the module
	webhookURL string
}

// prerequisites installs what Kueue needs to start: its namespace, its role, its kinds.
func (k kueueInstall) prerequisites(ctx context.Context) error {
	var objects []*unstructured.Unstructured
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(kueueNamespace)
	objects = append(objects, namespace)

	for _, file := range []string{"role.yaml", "role_binding.yaml"} {
		read, err := readObjects(filepath.Join(k.dir, "config", "components", "rbac", file))
		if err != nil {
			return err
		}
		for _, object := range read {
			if err := named(object); err != nil {
				return err
			}
			objects = append(objects, object)
		}
	}
	crds, err := readObjects(filepath.Join(k.dir, "config", "components", "crd", "bases"))
	if err != nil {
		return err
	}
	converted, err := k.converted()
	if err != nil {
		return err
	}
	var established []func() error
	for _, crd := range crds {
		plural, _, _ := strings.Cut(crd.GetName(), ".")
		if slices.Contains(converted, plural) {
			if err := k.convertByWebhook(crd); err != nil {
				return fmt.Errorf("%s: %w", crd.GetName(), err)
			}
		}
		// Establishing takes the API server a second or two each; they wait together.
		established = append(established, func() error { return k.cluster.ApplyObjects(ctx, crd) })
	}
	if err := k.cluster.ApplyObjects(ctx, objects...); err != nil {
		return err
	}
	return all(established...)
}

// named gives roles and bindings the prefix that Kueue's own kustomization gives them, and binds them to its account.
func named(object *unstructured.Unstructured) error {
	const prefix = "kueue-"
	object.SetName(prefix + object.GetName())
	if !strings.HasSuffix(object.GetKind(), "Binding") {
		return nil
	}
	role, _, err := unstructured.NestedString(object.Object, "roleRef", "name")
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(object.Object, prefix+role, "roleRef", "name"); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(object.Object, []any{map[string]any{
		"kind": "ServiceAccount", "namespace": kueueNamespace, "name": kueueServiceAccount,
	}}, "subjects")
}

// converted lists the kinds that Kueue's own kustomization gives the conversion webhook, by their plural names. Others have
// several versions as well, but those differ in name only and Kueue refuses to convert them.
func (k kueueInstall) converted() ([]string, error) {
	raw, err := os.ReadFile(filepath.Join(k.dir, "config", "components", "crd", "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	var kustomization struct {
		Patches []struct{ Path string }
	}
	if err := yaml.Unmarshal(raw, &kustomization); err != nil {
		return nil, fmt.Errorf("Kueue's kustomization of its kinds: %w", err)
	}
	var plurals []string
	for _, p := range kustomization.Patches {
		if plural, is := strings.CutPrefix(filepath.Base(p.Path), "webhook_in_"); is {
			plurals = append(plurals, strings.TrimSuffix(plural, ".yaml"))
		}
	}
	if len(plurals) == 0 {
		return nil, fmt.Errorf("Kueue's kustomization names no kind with a conversion webhook")
	}
	return plurals, nil
}

// convertByWebhook sets the conversion webhook on a kind.
func (k kueueInstall) convertByWebhook(crd *unstructured.Unstructured) error {
	return unstructured.SetNestedMap(crd.Object, map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             k.clientConfig("/convert"),
		},
	}, "spec", "conversion")
}

func (k kueueInstall) clientConfig(path string) map[string]any {
	return map[string]any{"url": k.webhookURL + path, "caBundle": base64.StdEncoding.EncodeToString(k.cluster.pki.ca)}
}

// webhooks installs the admission webhooks and returns when the API server calls them.
func (k kueueInstall) webhooks(ctx context.Context) error {
	objects, err := readObjects(filepath.Join(k.dir, "config", "components", "webhook", "manifests.yaml"))
	if err != nil {
		return err
	}
	for _, object := range objects {
		object.SetName("kueue-" + object.GetName())
		hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, hook := range hooks {
			if err := k.redirect(hook.(map[string]any)); err != nil {
				return err
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, hooks, "webhooks"); err != nil {
			return err
		}
	}
	if err := k.cluster.ApplyObjects(ctx, objects...); err != nil {
		return err
	}
	return all(
		func() error { return await(ctx, probeLimit, k.mutates) },
		func() error { return await(ctx, probeLimit, k.validates) },
	)
}

func (k kueueInstall) redirect(hook map[string]any) error {
	path, _, err := unstructured.NestedString(hook, "clientConfig", "service", "path")
	if err != nil {
		return err
	}
	hook["clientConfig"] = k.clientConfig(path)
	// As Kueue's kustomization has it: a dead Kueue must not keep system pods from being created.
	name, _, _ := unstructured.NestedString(hook, "name")
	if kinds := []string{"pod.kb.io", "deployment.kb.io", "statefulset.kb.io"}; slices.Contains(kinds, name[1:]) {
		return unstructured.SetNestedSlice(hook, []any{map[string]any{
			"key": corev1.LabelMetadataName, "operator": "NotIn", "values": []any{"kube-system", kueueNamespace},
		}}, "namespaceSelector", "matchExpressions")
	}
	return nil
}

// mutates reports whether a Job with a queue is suspended when it is created, which is the mutating webhook's work.
func (k kueueInstall) mutates(ctx context.Context) (bool, error) {
	job, err := k.tryJob(ctx, nil)
	if err != nil {
		return false, err
	}
	return ptr.Deref(job.Spec.Suspend, false), nil
}

// validates reports whether a Job with a nonsensical parallelism is refused, which is the validating webhook's work.
func (k kueueInstall) validates(ctx context.Context) (bool, error) {
	_, err := k.tryJob(ctx, map[string]string{"kueue.x-k8s.io/job-min-parallelism": "-1"})
	if err != nil && strings.Contains(err.Error(), "vjob.kb.io") && strings.Contains(err.Error(), "denied") {
		return true, nil
	}
	return false, err
}

// tryJob asks the API server what it would make of a Job.
func (k kueueInstall) tryJob(ctx context.Context, annotations map[string]string) (*batchv1.Job, error) {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "probe-", Annotations: annotations,
			Labels: map[string]string{"kueue.x-k8s.io/queue-name": "probe"},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "none", Image: "none"}},
		}}},
	}
	return k.cluster.client.BatchV1().Jobs(metav1.NamespaceDefault).
		Create(ctx, job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}
