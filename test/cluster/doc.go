// Package cluster starts a real control plane on the loopback interface in seconds: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, Kueue, and KWOK, which plays the kubelets.
//
// Nothing is mocked, because what Berth must get right lies between these programs. Each is built from its Go module,
// pinned in components/<name>/go.mod, into the repository's .cache folder. The first build takes about ten minutes on
// two cores ("cluster build" does only that); afterwards a whole cluster is ready in four to seven seconds.
//
//	c := cluster.ForTest(t, cluster.Options{})
//	c.Apply(ctx, "testdata/pool.yaml")
//	c.Process(cluster.ControllerManager).Stop()
//
// Rules the package keeps:
//
//   - Every program runs with its default feature gates, except Kueue's DynamicResourceAllocation (on) and
//     VisibilityOnDemand (off), and with RBAC under the user name that it has in a real installation.
//   - Everything listens on 127.0.0.1. Ports are locked for the life of the cluster, so clusters of several test
//     binaries can run side by side and a stopped component finds its port again.
//   - Children die with the process that started them (on Linux; elsewhere only after an orderly Stop).
//   - Readiness is a condition that is observed, never a pause.
//   - Manifests of Kueue and KWOK are read from their modules; the repository holds no copy that could go stale.
package cluster
