// Command demo shows Berth's main job on real components: make demo.
//
// It starts etcd, Kubernetes, Kueue and KWOK on the loopback interface, installs Berth from config/ and runs the
// program cmd/berth-controller. Then it tells a story of four Jobs on one pool of sixteen hosts and draws, whenever
// something has changed, who holds which host.
//
// It exits with 0 only if the API server shows what the story claims: see package witness. Otherwise it exits with 1
// and says what is wrong. An interrupt ends everything that was started; the exit code is then 130.
package main
