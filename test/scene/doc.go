// Package scene puts Berth onto a test cluster and sets up what its tests play with: hardware, queues and gangs.
//
//	s := scene.New(t, c)              // CRDs, RBAC, policies, KEP pool, one ClusterQueue with Berth's check
//	                                  // and a watcher that fails the test at the first broken invariant
//	s.Run()                           // a controller in this process, under its own ServiceAccount
//	job := s.Submit(scene.Gang("a", "tpu-4x4", 4))
//	s.AwaitRunning(job)
package scene
