package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	autoscaling "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	configv1beta1 "sigs.k8s.io/kueue/apis/config/v1beta1"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueuev1beta1 "sigs.k8s.io/kueue/apis/kueue/v1beta1"
	kueuev1beta2 "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/config"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	_ "sigs.k8s.io/kueue/pkg/controller/jobs" // registers every job integration
	"sigs.k8s.io/kueue/pkg/dra"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/metrics"
	"sigs.k8s.io/kueue/pkg/util/useragent"
)

func main() {
	// --kubeconfig comes from controller-runtime, which registers it on the same flag set.
	configFile := flag.String("config", "", "file with a kueue Configuration; its defaults apply where it is silent")
	gates := flag.String("feature-gates", "", "comma-separated Name=true|false; overrides the gates of --config")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if err := run(ctrl.SetupSignalHandler(), *configFile, *gates); err != nil {
		fmt.Fprintln(os.Stderr, "kueue:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, configFile, gates string) error {
	types, err := knownTypes()
	if err != nil {
		return fmt.Errorf("registering API types: %w", err)
	}
	options, cfg, err := config.Load(types, configFile)
	if err != nil {
		return fmt.Errorf("loading %q: %w", configFile, err)
	}
	if err := setGates(gates, cfg.FeatureGates); err != nil {
		return fmt.Errorf("setting feature gates: %w", err)
	}
	// Webhook options depend on gates, so they are added only now.
	config.AddWebhookSettingsTo(&options, &cfg)
	options.Metrics = metricsserver.Options{BindAddress: cfg.Metrics.BindAddress}
	metrics.Register()

	if features.Enabled(features.DynamicResourceAllocation) && cfg.Resources != nil {
		if err := dra.CreateMapperFromConfiguration(cfg.Resources.DeviceClassMappings); err != nil {
			return fmt.Errorf("mapping device classes: %w", err)
		}
	}

	rest, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("loading kubeconfig: %w", err)
	}
	rest.UserAgent = useragent.Default()
	if *cfg.ClientConnection.QPS >= 0 {
		// One limiter for all clients; without it each API type would get a bucket of its own.
		rest.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(*cfg.ClientConnection.QPS, int(*cfg.ClientConnection.Burst))
	}
	mgr, err := ctrl.NewManager(rest, options)
	if err != nil {
		return fmt.Errorf("creating manager: %w", err)
	}
	if err := assemble(ctx, mgr, &cfg, rest); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// setGates applies the flag if there is one, else the configuration file's map. Naming a gate in both is an error, as
// in Kueue itself.
func setGates(flagValue string, fromFile map[string]bool) error {
	if err := config.ValidateFeatureGates(flagValue, fromFile).ToAggregate(); err != nil {
		return err
	}
	if flagValue != "" {
		return utilfeature.DefaultMutableFeatureGate.Set(flagValue)
	}
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(fromFile)
}

// knownTypes is the scheme of everything Kueue reads or writes, integrations included.
func knownTypes() (*runtime.Scheme, error) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, kueuev1beta1.AddToScheme, kueuev1beta2.AddToScheme,
		configv1beta1.AddToScheme, configapi.AddToScheme, autoscaling.AddToScheme,
	} {
		if err := add(types); err != nil {
			return nil, err
		}
	}
	return types, jobframework.ForEachIntegration(func(_ string, integration jobframework.IntegrationCallbacks) error {
		if integration.AddToScheme == nil {
			return nil
		}
		return integration.AddToScheme(types)
	})
}
