package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/faults"
)

func watchOptions() metav1.ListOptions { return metav1.ListOptions{} }

func TestProxyPassesCredentialsAndWatches(t *testing.T) {
	f := newFixture(t, "proxy")
	proxy := faults.NewProxy(t, f.cfg)
	through := proxy.Config(f.cfg)
	clientset, err := kubernetes.NewForConfig(through)
	must(t, err)

	review, err := clientset.AuthenticationV1().SelfSubjectReviews().
		Create(f.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	must(t, err)
	if got := review.Status.UserInfo.Username; got != "admin" {
		t.Errorf("through the proxy we are %q", got)
	}
	anonymous, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(through))
	must(t, err)
	if _, err := anonymous.CoreV1().Secrets(f.namespace).List(f.ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		t.Errorf("without credentials the proxy lends none, but got %v", err)
	}

	watch, err := clientset.CoreV1().ConfigMaps(f.namespace).Watch(f.ctx, watchOptions())
	must(t, err)
	defer watch.Stop()
	must(t, f.client.Create(f.ctx, f.configMap("a")))
	select {
	case event := <-watch.ResultChan():
		if cm, ok := event.Object.(*corev1.ConfigMap); !ok || cm.Name != "a" {
			t.Errorf("the watch delivered %v", event)
		}
	case <-time.After(limit):
		t.Error("the watch delivered nothing")
	}
}

func TestProxyCountsWrites(t *testing.T) {
	f := newFixture(t, "proxy-count")
	proxy := faults.NewProxy(t, f.cfg)
	must(t, run(f.ctx, f, newClient(t, proxy.Config(f.cfg))))
	var got []string
	for _, write := range proxy.Writes() {
		got = append(got, fmt.Sprintf("%d %s %s", write.Total, write.Site, write.Name))
	}
	want := []string{
		"1 create configmaps#1 ", "2 create configmaps#2 ", "3 update configmaps#1 a", "4 create pods#1 ",
		"5 patch pods/status#1 p", "6 apply configmaps#1 c", "7 delete configmaps#1 b",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("counted\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestHeldWriteIsForwardedAfterItsSenderGaveUp(t *testing.T) {
	f := newFixture(t, "proxy-hold")
	proxy := faults.NewProxy(t, f.cfg)
	c := newClient(t, proxy.Config(f.cfg))
	hold := proxy.HoldNth(2, 0, func(w faults.Write) bool { return w.Class() == "create configmaps" })
	must(t, c.Create(f.ctx, f.configMap("first")))

	ctx, cancel := context.WithCancel(f.ctx)
	result := make(chan error, 1)
	go func() { result <- c.Create(ctx, f.configMap("second")) }()
	await(t, "the second write", hold.Reached())
	must(t, hold.Err())
	if f.exists(t, "second") {
		t.Error("the write was not held")
	}
	cancel()
	if err := <-result; err == nil {
		t.Error("the sender got an answer")
	}
	hold.Release()
	await(t, "forwarding", hold.Done())
	if !f.exists(t, "second") {
		t.Error("the write was lost with its sender")
	}
	if got := hold.Status(); got != http.StatusCreated {
		t.Errorf("the held write was answered with status %d", got)
	}

	dropped := proxy.HoldNth(1, 0, nil)
	go func() { result <- c.Create(f.ctx, f.configMap("third")) }()
	await(t, "the third write", dropped.Reached())
	dropped.Drop()
	if err := <-result; err == nil {
		t.Error("a dropped write succeeded")
	}
	if f.exists(t, "third") {
		t.Error("a dropped write was forwarded")
	}
}

// childConfig names, to this test binary started as a child, the kubeconfig of the writer it plays.
const childConfig = "BERTH_FAULTS_CHILD"

// writeUntilConflict is the separately running controller of the next test; TestMain calls it in a child process.
func writeUntilConflict(kubeconfig string) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	cm := &corev1.ConfigMap{}
	for i := 0; ; i++ {
		if err := c.Get(ctx, client.ObjectKey{Namespace: "proxy-stop", Name: "a"}, cm); err != nil {
			return err
		}
		cm.Data = map[string]string{"by": "old leader", "turn": fmt.Sprint(i)}
		if err := c.Update(ctx, cm); apierrors.IsConflict(err) {
			fmt.Println("met a conflict")
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestOldLeaderIsStoppedAtAWriteAndThawedAfterTakeover(t *testing.T) {
	f := newFixture(t, "proxy-stop")
	must(t, f.client.Create(f.ctx, f.configMap("a")))
	proxy := faults.NewProxy(t, f.cfg)
	path := t.TempDir() + "/kubeconfig"
	must(t, shared.ForTest(t).WriteKubeconfig(path, proxy.Config(f.cfg)))

	self, err := os.Executable()
	must(t, err)
	gate := proxy.HoldNth(1, 0, nil) // so that the pid is known before the write that counts
	child, err := shared.ForTest(t).Run(f.ctx, cluster.Command{Name: "old-leader", Path: self, Env: []string{childConfig + "=" + path}})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(child.LogTail(100))
		}
		_ = child.Kill()
	})
	await(t, "the child's first write", gate.Reached())
	hold := proxy.HoldNth(3, child.PID(), nil)
	gate.Release()
	await(t, "the child's fourth write", hold.Reached())
	must(t, hold.Err())
	if got := hold.Write(); got.Class() != "update configmaps" || got.Total != 4 {
		t.Errorf("held %+v", got)
	}

	cm := &corev1.ConfigMap{}
	must(t, f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: "a"}, cm))
	if cm.Data["turn"] != "2" {
		t.Errorf("the third write left %v", cm.Data)
	}
	cm.Data = map[string]string{"by": "successor"}
	must(t, f.client.Update(f.ctx, cm))

	hold.Release()
	must(t, wait.PollUntilContextTimeout(f.ctx, 10*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		return child.Crashed() != nil, nil
	}))
	if end := child.Crashed().Error(); !strings.HasSuffix(end, "exit status 0") {
		t.Error(end)
	}
	must(t, child.Stop()) // a process that was stopped has not crashed
	said, err := os.ReadFile(child.LogPath())
	must(t, err)
	if !strings.Contains(string(said), "met a conflict") {
		t.Errorf("the child said\n%s", said)
	}
	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(cm), cm))
	if cm.Data["by"] != "successor" {
		t.Errorf("the late write took effect: %v", cm.Data)
	}
}
