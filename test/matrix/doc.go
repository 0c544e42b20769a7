// Package matrix breaks Berth at every write that it makes for a gang and looks whether the gang comes to its end all the
// same.
//
// # The matrix
//
// TestFaultMatrix first runs gangs without faults behind a recording client: some run to their end, some are evicted while
// they run, because their claim is deleted by hand, and then run to their end. The writes that every gang of a story takes
// are the sites; nobody lists them by hand. The cells are
//
//	site × {before, no response, after} × {restart, laggard} × accident
//	site × {before, no response} × survives × accident
//
// before: the write is not sent; no response: it is applied and the process does not learn so; after: it is applied and
// answered, and the process dies at once. restart: the process is dead to everybody, its lease runs out, and a new one
// starts with empty caches. laggard: a stand-by takes over whose caches were filled before, and whose watches are held
// back from the first fault on, in every other batch even from before the gangs were made. It hears of claims, reservations
// and Workloads once it has the lease, because a takeover waits for these, and of everything else after its first pass.
// survives: the process got an error, lives on and tries again.
//
// The accidents happen between the death and the takeover: nothing, the Workload, the Job or the namespace is deleted, the
// claim is deleted by hand, the ClusterQueue is held (and released when everything is at rest).
//
// # How a cell is made
//
// A controller serves the whole cluster and there is one lease, so up to 18 cells share one takeover: a batch. Each cell
// has a lane of its own, that is, four hosts, a pool, a flavor and a ClusterQueue, and a namespace that no cell had before.
// The process's client has a plan for each namespace (faults.WrapEach). When a lane's fault has struck, the process is dead
// to that namespace, and alive to the others until all have been struck; gangs whose site comes later run whole before.
// Then the process's wire is cut, the accidents happen, and the successor comes.
//
// What is asserted of each cell:
//
//   - the watcher of the invariants stays silent;
//   - the Job finishes after it ran whole by rank, or is gone, and nothing is left of Workload, pods, reservation and
//     claims; deleted namespaces disappear;
//   - where nothing else happened, one reservation served the gang from its beginning to its end, without an eviction;
//   - after each batch no host is reserved and every device is free. A gang takes its whole lane, so the next batch proves
//     it.
//
// Where there is no claim yet or any more, the accident of deleting it has nothing to happen to; the test says how often.
//
// # Which cells are played
//
// All of them take a quarter of an hour on two cores. Unless told otherwise the test plays one cell for every site, kind
// and takeover, with accidents dealt from a seed so that every site meets every accident:
//
//	go test ./test/matrix                                     # about 200 cells
//	BERTH_MATRIX_SEED=2 go test ./test/matrix                 # others
//	BERTH_MATRIX=full go test ./test/matrix -timeout 40m      # all, more than a thousand
//	BERTH_MATRIX='patch pods#2, before, laggard' go test …    # those whose names contain the text
//
// # The frozen leader
//
// TestLeaderIsFrozenAtEachWrite runs the real program behind faults.Proxy. At each write of a gang it is stopped with
// SIGSTOP while the write is on its way, complete; another process takes over and works, on one lane with the same gang,
// on two with another one on the same hardware. Then the write arrives and the old process wakes up. A late change must
// fail, both gangs must run whole, the watcher stays silent, and the old process must end with a failure.
package matrix
