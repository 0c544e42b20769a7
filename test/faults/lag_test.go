package faults_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/faults"
)

func TestLagKeepsACacheInThePast(t *testing.T) {
	f := newFixture(t, "lag")
	lag := faults.NewLag()
	clientset, err := kubernetes.NewForConfig(lag.Config(f.cfg))
	must(t, err)
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace(f.namespace))
	maps, secrets := factory.Core().V1().ConfigMaps().Informer(), factory.Core().V1().Secrets().Informer()
	seen := make(chan string, 100)
	watchNames(t, maps, "", seen)
	watchNames(t, secrets, "secret/", seen)
	ctx, cancel := context.WithCancel(f.ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	must(t, f.client.Create(f.ctx, f.configMap("before")))
	awaitName(t, seen, "before")

	if !lag.Watched("configmaps", "secrets") || lag.Watched("configmaps", "pods") {
		t.Error("the lag does not know what is watched")
	}
	lag.Hold("configmaps")
	must(t, f.client.Create(f.ctx, f.configMap("during-1")))
	must(t, f.client.Create(f.ctx, f.configMap("during-2")))
	// The other resource's watch is later in time, so what it delivers proves that the first one is held, not slow.
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = f.namespace, "s"
	must(t, f.client.Create(f.ctx, secret))
	awaitName(t, seen, "secret/s")
	if got := len(maps.GetStore().ListKeys()); got != 1 {
		t.Errorf("the held cache has %d objects, want 1", got)
	}
	if !f.exists(t, "during-1") {
		t.Error("a direct read was delayed too")
	}

	lag.Release()
	awaitName(t, seen, "during-1")
	awaitName(t, seen, "during-2")
}

// A cache that starts during a hold has nothing, and its end is not held up.
func TestLagHoldsNewWatchesAndLetsThemEnd(t *testing.T) {
	f := newFixture(t, "lag-start")
	lag := faults.NewLag()
	lag.Hold()
	clientset, err := kubernetes.NewForConfig(lag.Config(f.cfg))
	must(t, err)
	watch, err := clientset.CoreV1().ConfigMaps(f.namespace).Watch(f.ctx, watchOptions())
	must(t, err)
	prompt, err := f.client.Watch(f.ctx, &corev1.ConfigMapList{}, client.InNamespace(f.namespace))
	must(t, err)
	defer prompt.Stop()
	// When a watch that is not held has told of the second object, the held one is not merely slow to tell of the first.
	for _, name := range []string{"a", "b"} {
		must(t, f.client.Create(f.ctx, f.configMap(name)))
		awaitEvent(t, prompt, name)
	}
	select {
	case event := <-watch.ResultChan():
		t.Errorf("a held watch delivered %v", event)
	default:
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		watch.Stop()
		for range watch.ResultChan() { // ends when the reader has
		}
	}()
	await(t, "end of a held watch", stopped)
}

func watchNames(t *testing.T, informer cache.SharedIndexInformer, prefix string, seen chan<- string) {
	t.Helper()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if name, err := cache.ObjectToName(obj); err == nil {
			seen <- prefix + name.Name
		}
	}})
	must(t, err)
}

func awaitEvent(t *testing.T, w watch.Interface, name string) {
	t.Helper()
	timeout := time.After(limit)
	for {
		select {
		case event, open := <-w.ResultChan():
			if cm, ok := event.Object.(*corev1.ConfigMap); ok && cm.Name == name {
				return
			}
			if !open {
				t.Fatalf("the watch ended before it told of %s", name)
			}
		case <-timeout:
			t.Fatalf("the watch did not tell of %s", name)
		}
	}
}

func awaitName(t *testing.T, seen <-chan string, want string) {
	t.Helper()
	timeout := time.After(limit)
	for {
		select {
		case got := <-seen:
			if got == want {
				return
			}
		case <-timeout:
			t.Fatalf("%s did not arrive", want)
		}
	}
}
