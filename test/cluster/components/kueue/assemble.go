package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	"sigs.k8s.io/kueue/pkg/controller/tas"
	tasindexer "sigs.k8s.io/kueue/pkg/controller/tas/indexer"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/scheduler"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/fairsharing"
	"sigs.k8s.io/kueue/pkg/util/kubeversion"
	"sigs.k8s.io/kueue/pkg/util/waitforpodsready"
	"sigs.k8s.io/kueue/pkg/webhooks"
)

// assemble adds all of Kueue to mgr: indexes before caches start, controllers, webhooks, scheduler and probes.
func assemble(ctx context.Context, mgr ctrl.Manager, cfg *configapi.Configuration, conn *rest.Config) error {
	if err := addIndexes(ctx, mgr, cfg); err != nil {
		return fmt.Errorf("adding indexes: %w", err)
	}

	requeuer := qcache.NewRequeuer()
	if err := mgr.Add(requeuer); err != nil {
		return fmt.Errorf("adding requeuer: %w", err)
	}
	expected := preemptexpectations.New()
	cacheOptions, queueOptions := cacheSettings(cfg)
	cache := schdcache.New(mgr.GetClient(), cacheOptions...)
	queues := qcache.NewManager(mgr.GetClient(), cache, requeuer,
		append(queueOptions, qcache.WithPreemptionExpectations(expected))...)

	if name, err := core.SetupControllers(mgr, queues, cache, cfg, nil, expected, nil); err != nil {
		return fmt.Errorf("setting up controller %s: %w", name, err)
	}
	if features.Enabled(features.TopologyAwareScheduling) {
		if name, err := tas.SetupControllers(mgr, queues, cache, cfg, nil); err != nil {
			return fmt.Errorf("setting up topology controller %s: %w", name, err)
		}
	}
	if err := addIntegrations(ctx, mgr, cfg, conn, cache, queues); err != nil {
		return fmt.Errorf("setting up job integrations: %w", err)
	}
	if name, err := webhooks.Setup(mgr, nil); err != nil {
		return fmt.Errorf("setting up webhook %s: %w", name, err)
	}
	if err := mgr.Add(scheduler.New(queues, cache, mgr.GetClient(), mgr.GetEventRecorderFor(constants.AdmissionName),
		scheduler.WithPodsReadyRequeuingTimestamp(requeuingTimestamp(cfg)),
		scheduler.WithFairSharing(cfg.FairSharing),
		scheduler.WithAdmissionFairSharing(cfg.AdmissionFairSharing),
		scheduler.WithPreemptionExpectations(expected),
	)); err != nil {
		return fmt.Errorf("adding scheduler: %w", err)
	}

	go queues.CleanUpOnContext(ctx)
	go cache.CleanUpOnContext(ctx)

	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	// Ready means the webhook server listens, which is what whoever installs the webhooks has to know.
	return mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker())
}

func addIndexes(ctx context.Context, mgr ctrl.Manager, cfg *configapi.Configuration) error {
	fields := mgr.GetFieldIndexer()
	if err := indexer.Setup(ctx, fields); err != nil {
		return err
	}
	if features.Enabled(features.TopologyAwareScheduling) {
		if err := tasindexer.SetupIndexes(ctx, fields); err != nil {
			return err
		}
	}
	return jobframework.SetupIndexes(ctx, fields, jobframework.WithEnabledFrameworks(cfg.Integrations.Frameworks))
}

func addIntegrations(ctx context.Context, mgr ctrl.Manager, cfg *configapi.Configuration, conn *rest.Config,
	cache *schdcache.Cache, queues *qcache.Manager) error {
	namespaces, err := metav1.LabelSelectorAsSelector(cfg.ManagedJobsNamespaceSelector)
	if err != nil {
		return fmt.Errorf("managedJobsNamespaceSelector: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(conn)
	if err != nil {
		return err
	}
	// Integrations ask for the server's version at set-up, so the first fetch cannot wait for the manager.
	version := kubeversion.NewServerVersionFetcher(disco)
	if err := version.FetchServerVersion(); err != nil {
		return fmt.Errorf("asking for the server's version: %w", err)
	}
	if err := mgr.Add(version); err != nil {
		return err
	}
	return jobframework.SetupControllers(ctx, mgr, mgr.GetLogger().WithName("integrations"),
		jobframework.WithManagerName(constants.KueueName),
		jobframework.WithManageJobsWithoutQueueName(cfg.ManageJobsWithoutQueueName),
		jobframework.WithManagedJobsNamespaceSelector(namespaces),
		jobframework.WithWaitForPodsReady(cfg.WaitForPodsReady),
		jobframework.WithKubeServerVersion(version),
		jobframework.WithEnabledFrameworks(cfg.Integrations.Frameworks),
		jobframework.WithEnabledExternalFrameworks(cfg.Integrations.ExternalFrameworks),
		jobframework.WithLabelKeysToCopy(cfg.Integrations.LabelKeysToCopy),
		jobframework.WithObjectRetentionPolicies(cfg.ObjectRetentionPolicies),
		jobframework.WithCache(cache),
		jobframework.WithQueues(queues),
	)
}

// cacheSettings derives what the two caches need from the configuration. Both must see the same resources, or quota
// would be counted in one and not in the other.
func cacheSettings(cfg *configapi.Configuration) ([]schdcache.Option, []qcache.Option) {
	wait := cfg.WaitForPodsReady
	blocks := waitforpodsready.Enabled(wait) && wait.BlockAdmission != nil && *wait.BlockAdmission
	cache := []schdcache.Option{schdcache.WithPodsReadyTracking(blocks)}
	queue := []qcache.Option{qcache.WithPodsReadyRequeuingTimestamp(requeuingTimestamp(cfg))}
	if res := cfg.Resources; res != nil {
		cache = append(cache, schdcache.WithExcludedResourcePrefixes(res.ExcludeResourcePrefixes),
			schdcache.WithResourceTransformations(res.Transformations))
		queue = append(queue, qcache.WithExcludedResourcePrefixes(res.ExcludeResourcePrefixes),
			qcache.WithResourceTransformations(res.Transformations))
	}
	if cfg.FairSharing != nil {
		cache = append(cache, schdcache.WithFairSharing(fairsharing.Enabled(cfg.FairSharing)))
	}
	if cfg.AdmissionFairSharing != nil {
		cache = append(cache, schdcache.WithAdmissionFairSharing(cfg.AdmissionFairSharing))
		queue = append(queue, qcache.WithAdmissionFairSharing(cfg.AdmissionFairSharing))
	}
	return cache, queue
}

func requeuingTimestamp(cfg *configapi.Configuration) configapi.RequeuingTimestamp {
	if wait := cfg.WaitForPodsReady; wait != nil && wait.RequeuingStrategy != nil && wait.RequeuingStrategy.Timestamp != nil {
		return *wait.RequeuingStrategy.Timestamp
	}
	return configapi.EvictionTimestamp
}
