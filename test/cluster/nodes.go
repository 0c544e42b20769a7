package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// CreateNamespace creates a namespace and returns when pods can be created in it. It is no error if it exists.
func (c *Cluster) CreateNamespace(ctx context.Context, name string, labels map[string]string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	_, err := c.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if c.options.has(ControllerManager) {
		return c.awaitDefaultServiceAccount(ctx, name)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = c.client.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// AwaitNodes returns once the named nodes, or all if none is named, are Ready and free of the taints that
// kube-controller-manager puts on nodes that are not; so it needs that and KWOK. It waits for at most one minute.
func (c *Cluster) AwaitNodes(ctx context.Context, names ...string) error {
	var waiting []string
	err := await(ctx, readyLimit, func(ctx context.Context) (bool, error) {
		list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		waiting = slices.Clone(names)
		for _, node := range list.Items {
			if nodeUsable(&node) {
				waiting = slices.DeleteFunc(waiting, func(name string) bool { return name == node.Name })
			} else if len(names) == 0 {
				waiting = append(waiting, node.Name)
			}
		}
		return len(waiting) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for nodes %v: %w", waiting, err)
	}
	return nil
}

func nodeUsable(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// silencer holds the leases of silenced nodes.
const silencer = "silenced"

// SilenceNode makes a node fall silent as if it had lost power: KWOK neither renews its lease nor touches its pods, so
// kube-controller-manager finds it NotReady after Options.NodeMonitorGracePeriod, and its pods are not confirmed deleted.
//
// It takes the node's lease: KWOK leaves alone what another holds, which is how several KWOKs share nodes.
func (c *Cluster) SilenceNode(ctx context.Context, name string) error {
	// A last sign of life goes with it. kube-controller-manager from 1.37 on believes in a node's silence only if the
	// lease is exactly the one that it last saw renewed (gate NodeControllerLeaseCircuitBreaker); a write that left the
	// renew time alone would keep the node from ever becoming NotReady.
	return c.handLease(ctx, name, func(lease *coordinationv1.LeaseSpec) {
		lease.RenewTime = ptr.To(metav1.NowMicro())
		lease.LeaseDurationSeconds = ptr.To(int32(24 * 60 * 60))
	})
}

// ReviveNode ends SilenceNode: KWOK takes the lease back within a quarter of Options.NodeMonitorGracePeriod and makes the
// node Ready.
func (c *Cluster) ReviveNode(ctx context.Context, name string) error {
	return c.handLease(ctx, name, func(lease *coordinationv1.LeaseSpec) {
		lease.LeaseDurationSeconds = ptr.To[int32](1) // so that it has expired
	})
}

// handLease gives a node's lease to the silencer, changed as change wants it. The lease may be yet to come, and KWOK may
// write it at the same moment; both are tried again.
func (c *Cluster) handLease(ctx context.Context, node string, change func(*coordinationv1.LeaseSpec)) error {
	leases := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	err := await(ctx, 30*time.Second, func(ctx context.Context) (bool, error) {
		lease, err := leases.Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		lease.Spec.HolderIdentity = ptr.To(silencer)
		change(&lease.Spec)
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("taking the lease of node %s: %w", node, err)
	}
	return nil
}

// CompletePods lets the pods that match the label selector succeed as soon as they run; see CompleteOnRequest.
// It returns how many it marked; KWOK does the rest.
func (c *Cluster) CompletePods(ctx context.Context, namespace, selector string) (int, error) {
	pods := c.client.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0, err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{completeAnnotation: "true"},
	}})
	if err != nil {
		return 0, err
	}
	marked := 0
	for _, pod := range list.Items {
		_, err := pods.Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return marked, err
		}
		marked++
	}
	return marked, nil
}
