package controllers

import (
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	kueuev1beta2 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	berthv1alpha1 "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/shell"
)

// Options are what New needs to know.
type Options struct {
	// REST says how to reach the API server and as whom. Its limits and time-outs are ignored: Config has them.
	REST *rest.Config
	// Config must be valid.
	Config configv1alpha1.BerthConfiguration
	// Identity is the name of the pod. Identities may repeat; what names a term is made unique.
	Identity string
	// UID is the UID of the pod; empty: a random one.
	UID string
	// Logger is given to everything that runs.
	Logger logr.Logger
	// WrapClient, if set, stands between the counter of writes and the API server. Tests inject faults with it.
	WrapClient func(client.WithWatch) client.WithWatch
	// Setups, if not nil, are run instead of the controllers of this package. Tests of the process use it.
	Setups []Setup
}

// Setup adds one controller to the manager.
type Setup func(manager.Manager, *shell.Dependencies) error

func (o *Options) validate() error {
	if o.REST == nil {
		return errors.New("no API server is given")
	}
	if o.Identity == "" {
		return errors.New("no identity is given")
	}
	if faults := o.Config.Validate(); len(faults) > 0 {
		return faults.ToAggregate()
	}
	return nil
}

// NewScheme knows the kinds of Kubernetes, Kueue and Berth.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, kueuev1beta2.AddToScheme, berthv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}
