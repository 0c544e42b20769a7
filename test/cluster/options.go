package cluster

import (
	"fmt"
	"io"
	"slices"
	"time"

	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
)

// Options say what cluster to start. The zero value is a whole one.
type Options struct {
	// Repository is the root folder of the checkout; default: found from the working directory upwards.
	Repository string
	// Dir takes data, certificates, kubeconfigs and logs. Default: a new temporary folder, removed by Stop unless the
	// cluster failed. A given folder is kept, and a cluster started on it again finds its objects.
	Dir string
	// Without names components to leave out. etcd and kube-apiserver cannot be left out.
	// Without kube-controller-manager there are no default service accounts, for which CreateNamespace makes up, no
	// garbage collection, and the aggregated roles admin, edit and view grant nothing.
	Without []string
	// Args are added to a component's command line, by component name. Of a flag given twice the last counts.
	Args map[string][]string
	// Audit has the API server record the metadata of every write; see Cluster.Writes.
	Audit bool
	// NodeMonitorPeriod is how often kube-controller-manager looks at node leases; default 1 s.
	NodeMonitorPeriod time.Duration
	// NodeMonitorGracePeriod is how long a node may be silent before it is NotReady; default 1 min. KWOK renews leases
	// at a quarter of it, so values below about 8 s make nodes flap on a busy machine.
	NodeMonitorGracePeriod time.Duration
	Kueue                  KueueOptions
	KWOK                   KWOKOptions
	// Log gets the progress of builds and of the start; default: nothing is said.
	Log io.Writer
}

// OnlyAPIServer is a value for Options.Without that leaves etcd and kube-apiserver.
var OnlyAPIServer = []string{ControllerManager, Scheduler, Kueue, KWOK}

// OnlyKubernetes is a value for Options.Without that leaves out what is not Kubernetes.
var OnlyKubernetes = []string{Kueue, KWOK}

// KueueOptions configure Kueue.
type KueueOptions struct {
	// DeviceClasses maps a resource name to the device classes that are charged as it. Default: DefaultDeviceClasses.
	// An empty, non-nil map maps nothing.
	DeviceClasses map[string][]string
	// FeatureGates are set on top of DynamicResourceAllocation=true and VisibilityOnDemand=false.
	FeatureGates map[string]bool
	// Configure may change the configuration before it is written, for instance WaitForPodsReady.
	Configure func(*configapi.Configuration)
}

// DefaultDeviceClasses are those of the pool in test/testdata/kep4815-multihost.yaml.
var DefaultDeviceClasses = map[string][]string{
	"berth.dev/shares": {"tpu-2x2", "tpu-4x4", "tpu-4x8", "tpu-8x8"},
}

// Completion says when KWOK lets a running pod of a Job succeed.
type Completion string

const (
	// CompleteAtOnce is KWOK's own fast stage: pods of Jobs succeed as soon as they run.
	CompleteAtOnce Completion = "AtOnce"
	// CompleteOnRequest lets pods run until CompletePods is called for them. This is the default.
	CompleteOnRequest Completion = "OnRequest"
)

// KWOKOptions configure KWOK, which plays the kubelet of each node with the annotation kwok.x-k8s.io/node: fake.
type KWOKOptions struct {
	// Completion of Jobs' pods; default CompleteOnRequest.
	Completion Completion
	// Stages are files or folders with further Stage objects, read after the built-in ones.
	Stages []string
}

func (o *Options) setDefaults() error {
	if o.Repository == "" {
		root, err := FindRepository(".")
		if err != nil {
			return err
		}
		o.Repository = root
	}
	known := []string{Etcd, APIServer, ControllerManager, Scheduler, Kueue, KWOK}
	for _, name := range o.Without {
		if !slices.Contains(known, name) {
			return fmt.Errorf("cannot leave out %q: no such component", name)
		}
		if name == Etcd || name == APIServer {
			return fmt.Errorf("cannot leave out %s: a cluster is nothing without it", name)
		}
	}
	for name := range o.Args {
		if !o.has(name) || !slices.Contains(known, name) {
			return fmt.Errorf("arguments for %q, which is not part of the cluster", name)
		}
	}
	if o.NodeMonitorPeriod == 0 {
		o.NodeMonitorPeriod = time.Second
	}
	if o.NodeMonitorGracePeriod == 0 {
		o.NodeMonitorGracePeriod = time.Minute
	}
	if o.Kueue.DeviceClasses == nil {
		o.Kueue.DeviceClasses = DefaultDeviceClasses
	}
	switch o.KWOK.Completion {
	case "":
		o.KWOK.Completion = CompleteOnRequest
	case CompleteAtOnce, CompleteOnRequest:
	default:
		return fmt.Errorf("unknown completion %q", o.KWOK.Completion)
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return nil
}

func (o *Options) has(name string) bool { return !slices.Contains(o.Without, name) }
