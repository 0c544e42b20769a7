// Package nodes reads Nodes and Pods into the functional core: which hosts exist and may be used, what room pods leave on
// them, and which hosts a pod template rules out. It counts requests, taints and node affinity as kube-scheduler does, and
// knows nothing of its other rules: affinity between pods, topology spread, host ports, volumes.
package nodes
