package wholepath

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/test/scene"
)

// contender is who brings gangs to their hosts.
type contender string

const (
	// alone: Kueue admits Jobs that have no claims, and kube-scheduler puts their pods anywhere.
	alone contender = "kueue"
	// byScheduler: Kueue admits, and kube-scheduler allocates the device of each pod when it comes to it.
	byScheduler contender = "scheduler"
	// byBerth: Kueue and Berth admit, and kube-scheduler binds.
	byBerth contender = "berth"
)

// site of the contender's runs, ready for Jobs. Everything is taken back when the benchmark ends.
func (c contender) site(b *testing.B) *site {
	b.Helper()
	if c != byBerth {
		return newSite(b, unchecked)
	}
	s := newSite(b, checked)
	s.Run(scene.RunOptions{Change: func(o *controllers.Options) { o.Logger = logr.Discard() }})
	for _, driver := range []string{worlds.Driver, wideDriver} {
		pool := dratest.Pool(driver)
		s.Create(pool)
		s.Cleanup(func() { s.remove(pool) }) // While the controller runs: the fence goes with the pool.
		s.Eventually("the fence of "+driver, func(ctx context.Context) error {
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
				return err
			}
			for _, condition := range []string{berth.PoolReady, berth.PoolFenced} {
				if !apimeta.IsStatusConditionTrue(pool.Status.Conditions, condition) {
					return fmt.Errorf("not %s: %v", condition, pool.Status.Conditions)
				}
			}
			return nil
		})
	}
	s.Eventually("ClusterQueue "+checked, func(ctx context.Context) error { return s.active(ctx, checked) })
	return s
}

// active returns nil when Kueue admits from the ClusterQueue.
func (s *site) active(ctx context.Context, queue string) error {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queue}}
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(q), q); err != nil {
		return err
	}
	if !apimeta.IsStatusConditionTrue(q.Status.Conditions, kueue.ClusterQueueActive) {
		return fmt.Errorf("it is not active: %v", q.Status.Conditions)
	}
	return nil
}

// remove deletes an object at the end of the benchmark and waits until it is gone.
func (s *site) remove(obj client.Object) {
	s.Helper()
	ctx := context.Background() // the benchmark's own has ended by now
	if err := client.IgnoreNotFound(s.Client.Delete(ctx, obj)); err != nil {
		s.Error(err)
	}
	if err := s.Await(ctx, func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return client.IgnoreNotFound(err)
		}
		return errors.New("it is still there")
	}); err != nil {
		s.Errorf("removing %s: %v", obj.GetName(), err)
	}
}
