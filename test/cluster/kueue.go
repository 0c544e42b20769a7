package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	"sigs.k8s.io/yaml"
)

const (
	kueueNamespace      = "kueue-system"
	kueueServiceAccount = "kueue-controller-manager"
)

// kueuePorts are the ports of one Kueue.
type kueuePorts struct{ webhook, health int }

func (c *Cluster) startKueue(ctx context.Context) error {
	mod, err := pinned(ctx, componentSource(c.options.Repository, Kueue), "sigs.k8s.io/kueue")
	if err != nil {
		return err
	}
	var ports kueuePorts
	if ports.webhook, err = c.FreePort(); err != nil {
		return err
	}
	if ports.health, err = c.FreePort(); err != nil {
		return err
	}
	install := kueueInstall{cluster: c, dir: mod.dir, webhookURL: "https://" + address(ports.webhook)}
	if err := install.prerequisites(ctx); err != nil {
		return fmt.Errorf("installing %s: %w", Kueue, err)
	}
	config, err := c.kueueConfig(ports)
	if err != nil {
		return err
	}
	if err := c.write("kueue.yaml", config); err != nil {
		return err
	}
	kubeconfig, err := c.kubeconfigOf(Kueue)
	if err != nil {
		return err
	}
	_, err = c.component(ctx, Kueue, []int{ports.webhook, ports.health},
		httpOK("http://"+address(ports.health)+"/readyz", nil, ""),
		"--config="+c.path("kueue.yaml"),
		"--kubeconfig="+kubeconfig,
		"--feature-gates="+c.kueueGates(),
		"--zap-log-level=2",
	)
	if err != nil {
		return err
	}
	// Only now: a webhook that fails closed and does not answer yet would stop the other components' writes.
	if err := install.webhooks(ctx); err != nil {
		return fmt.Errorf("installing the webhooks of %s: %w\n%s", Kueue, err, c.Process(Kueue).LogTail(30))
	}
	return nil
}

func (c *Cluster) kueueGates() string {
	gates := map[string]bool{"DynamicResourceAllocation": true, "VisibilityOnDemand": false}
	maps.Copy(gates, c.options.Kueue.FeatureGates)
	var flags []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		flags = append(flags, fmt.Sprintf("%s=%t", name, gates[name]))
	}
	return strings.Join(flags, ",")
}

// kueueConfig is the configuration of Kueue's own manifests where it matters to a Workload, with loopback addresses and
// without limits on its client.
func (c *Cluster) kueueConfig(ports kueuePorts) ([]byte, error) {
	config := &configapi.Configuration{
		TypeMeta:  metav1.TypeMeta{APIVersion: configapi.GroupVersion.String(), Kind: "Configuration"},
		Namespace: ptr.To(kueueNamespace),
		ControllerManager: configapi.ControllerManager{
			Webhook: configapi.ControllerWebhook{
				Host: "127.0.0.1", Port: ptr.To(ports.webhook), CertDir: c.pki.dir,
			},
			Health:  configapi.ControllerHealth{HealthProbeBindAddress: address(ports.health)},
			Metrics: configapi.ControllerMetrics{BindAddress: "0"},
			// Alone it need not campaign, and a restarted one works at once.
			LeaderElection: &configv1alpha1.LeaderElectionConfiguration{LeaderElect: ptr.To(false)},
			Controller: &configapi.ControllerConfigurationSpec{GroupKindConcurrency: map[string]int{
				"Job.batch": 5, "Pod": 5, "Workload.kueue.x-k8s.io": 5, "LocalQueue.kueue.x-k8s.io": 1,
				"Cohort.kueue.x-k8s.io": 1, "ClusterQueue.kueue.x-k8s.io": 1, "ResourceFlavor.kueue.x-k8s.io": 1,
			}},
		},
		InternalCertManagement: &configapi.InternalCertManagement{Enable: ptr.To(false)},
		ClientConnection:       &configapi.ClientConnection{QPS: ptr.To[float32](clientQPS), Burst: ptr.To[int32](clientBurst)},
		Integrations: &configapi.Integrations{Frameworks: []string{
			"batch/job", "jobset.x-k8s.io/jobset", "pod", "deployment", "statefulset",
			"leaderworkerset.x-k8s.io/leaderworkerset", "kubeflow.org/mpijob", "kubeflow.org/pytorchjob",
			"kubeflow.org/jaxjob", "kubeflow.org/tfjob", "kubeflow.org/xgboostjob", "kubeflow.org/paddlejob",
			"trainer.kubeflow.org/trainjob", "ray.io/rayjob", "ray.io/raycluster", "ray.io/rayservice",
			"workload.codeflare.dev/appwrapper",
		}},
	}
	for _, resource := range slices.Sorted(maps.Keys(c.options.Kueue.DeviceClasses)) {
		mapping := configapi.DeviceClassMapping{Name: corev1.ResourceName(resource)}
		for _, class := range c.options.Kueue.DeviceClasses[resource] {
			mapping.DeviceClassNames = append(mapping.DeviceClassNames, corev1.ResourceName(class))
		}
		if config.Resources == nil {
			config.Resources = &configapi.Resources{}
		}
		config.Resources.DeviceClassMappings = append(config.Resources.DeviceClassMappings, mapping)
	}
	if c.options.Kueue.Configure != nil {
		c.options.Kueue.Configure(config)
	}
	return yaml.Marshal(config)
}

// probeLimit bounds how long the API server may take to call a new webhook.
const probeLimit = readyLimit
