package faults_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
)

var shared = cluster.Shared{Options: cluster.Options{Without: cluster.OnlyAPIServer}}

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(childConfig); kubeconfig != "" {
		if err := writeUntilConflict(kubeconfig); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(shared.Main(m))
}

const limit = 20 * time.Second

// fixture is a namespace of its own and a client of the administrator.
type fixture struct {
	ctx       context.Context
	cfg       *rest.Config
	client    client.WithWatch
	namespace string
}

func newFixture(t *testing.T, namespace string) fixture {
	t.Helper()
	c := shared.ForTest(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	must(t, c.CreateNamespace(ctx, namespace, nil))
	return fixture{ctx: ctx, cfg: c.RESTConfig(), client: newClient(t, c.RESTConfig()), namespace: namespace}
}

func newClient(t *testing.T, cfg *rest.Config) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(cfg, client.Options{})
	must(t, err)
	return c
}

func (f fixture) configMap(name string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = f.namespace, name
	return cm
}

// exists asks the API server, past every wrapper.
func (f fixture) exists(t *testing.T, name string) bool {
	t.Helper()
	err := f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, &corev1.ConfigMap{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(limit):
		t.Fatalf("%s: not within %s", what, limit)
	}
}
