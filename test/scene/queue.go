package scene

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func (s *Scene) queue() {
	s.Create(&kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: LocalQueue},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: ClusterQueue},
	})
}

// AwaitSeenByKueue waits until Kueue has looked at what the ClusterQueues say now. It admits by what it knows of them.
func (s *Scene) AwaitSeenByKueue(clusterQueues ...string) {
	s.Helper()
	for _, name := range clusterQueues {
		s.Eventually("Kueue's look at ClusterQueue "+name, func(ctx context.Context) error {
			queue := &kueue.ClusterQueue{}
			if err := s.Client.Get(ctx, client.ObjectKey{Name: name}, queue); err != nil {
				return err
			}
			c := apimeta.FindStatusCondition(queue.Status.Conditions, kueue.ClusterQueueActive)
			if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != queue.Generation {
				return fmt.Errorf("its generation is %d and its conditions are %v", queue.Generation, queue.Status.Conditions)
			}
			return nil
		})
	}
}
