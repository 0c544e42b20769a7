package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

func (c *Cluster) startAPIServer(ctx context.Context) error {
	clientPort, err := c.FreePort()
	if err != nil {
		return err
	}
	peerPort, err := c.FreePort()
	if err != nil {
		return err
	}
	if c.apiPort, err = c.FreePort(); err != nil {
		return err
	}
	etcdURL, peerURL := "http://"+address(clientPort), "http://"+address(peerPort)
	_, err = c.component(ctx, Etcd, []int{clientPort, peerPort}, httpOK(etcdURL+"/readyz", nil, ""),
		"--name=berth",
		"--data-dir="+c.path("etcd"),
		"--listen-client-urls="+etcdURL,
		"--advertise-client-urls="+etcdURL,
		"--listen-peer-urls="+peerURL,
		"--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster=berth="+peerURL,
		// Nobody needs this data after a power cut.
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}

	args := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.apiPort),
		// A loopback address may not stand in the endpoints of the kubernetes service.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file=" + c.pki.path("tls.crt"),
		"--tls-private-key-file=" + c.pki.path("tls.key"),
		"--token-auth-file=" + c.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki.path("sa.key"),
		"--service-account-signing-key-file=" + c.pki.path("sa.key"),
	}
	if c.options.Audit {
		if err := c.write("audit-policy.yaml", []byte(auditPolicy)); err != nil {
			return err
		}
		// Left to itself the API server begins a new file after 100 MB.
		args = append(args, "--audit-policy-file="+c.path("audit-policy.yaml"), "--audit-log-path="+c.path(auditLog), "--audit-log-maxsize=100000")
	}
	cfg := c.RESTConfig()
	_, err = c.component(ctx, APIServer, []int{c.apiPort}, httpOK(cfg.Host+"/readyz", c.pki.ca, cfg.BearerToken), args...)
	if err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	if c.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return err
	}
	c.mapper = newMapper(c.client.Discovery())
	return c.WriteKubeconfig(c.path("kubeconfig"), cfg)
}

func (c *Cluster) startControllerManager(ctx context.Context) error {
	port, err := c.FreePort()
	if err != nil {
		return err
	}
	kubeconfig, err := c.kubeconfigOf(ControllerManager)
	if err != nil {
		return err
	}
	_, err = c.component(ctx, ControllerManager, []int{port}, c.served(port, "/healthz"),
		"--kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(port),
		"--tls-cert-file="+c.pki.path("tls.crt"),
		"--tls-private-key-file="+c.pki.path("tls.key"),
		"--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
		// Alone it need not campaign, and a restarted one works at once.
		"--leader-elect=false",
		"--use-service-account-credentials",
		"--service-account-private-key-file="+c.pki.path("sa.key"),
		"--root-ca-file="+c.pki.path("ca.crt"),
		"--kube-api-qps="+strconv.Itoa(clientQPS),
		"--kube-api-burst="+strconv.Itoa(clientBurst),
		"--node-monitor-period="+c.options.NodeMonitorPeriod.String(),
		"--node-monitor-grace-period="+c.options.NodeMonitorGracePeriod.String(),
	)
	if err != nil {
		return err
	}
	if err := c.awaitDefaultServiceAccount(ctx, metav1.NamespaceDefault); err != nil {
		return fmt.Errorf("%s: %w\n%s", ControllerManager, err, c.Process(ControllerManager).LogTail(30))
	}
	return nil
}

// awaitDefaultServiceAccount returns once pods can be created in namespace.
func (c *Cluster) awaitDefaultServiceAccount(ctx context.Context, namespace string) error {
	err := await(ctx, readyLimit, func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the default service account of namespace %s: %w", namespace, err)
	}
	return nil
}

func (c *Cluster) startScheduler(ctx context.Context) error {
	port, err := c.FreePort()
	if err != nil {
		return err
	}
	kubeconfig, err := c.kubeconfigOf(Scheduler)
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: %d, burst: %d}
`, kubeconfig, clientQPS, clientBurst)
	if err := c.write("kube-scheduler.yaml", []byte(config)); err != nil {
		return err
	}
	// It serves /healthz before its informers have synced, /readyz after.
	_, err = c.component(ctx, Scheduler, []int{port}, c.served(port, "/readyz"),
		"--config="+c.path("kube-scheduler.yaml"),
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(port),
		"--tls-cert-file="+c.pki.path("tls.crt"),
		"--tls-private-key-file="+c.pki.path("tls.key"),
		"--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
	)
	return err
}

// component runs a built program with args, followed by those that Options.Args has for it.
func (c *Cluster) component(ctx context.Context, name string, ports []int,
	ready func(context.Context) (bool, error), args ...string) (*Process, error) {
	return c.Run(ctx, Command{
		Name:  name,
		Path:  c.binaries[name],
		Args:  append(args, c.options.Args[name]...),
		Ports: ports,
		Ready: ready,
	})
}

func (c *Cluster) kubeconfigOf(identityName string) (string, error) {
	path := c.path(identityName + ".kubeconfig")
	return path, c.WriteKubeconfig(path, c.configFor(identityName))
}

func (c *Cluster) served(port int, path string) func(context.Context) (bool, error) {
	return httpOK("https://"+address(port)+path, c.pki.ca, "")
}

// httpOK returns a check whether a GET of url is answered with 200. token may be empty.
func httpOK(url string, ca []byte, token string) func(context.Context) (bool, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{
		Timeout: 5 * time.Second,
		// Each check dials anew: a restarted server must not be judged by the connection to its predecessor.
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
	return func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, permanent{err}
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			return false, err
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(response.Body, 2000))
		if response.StatusCode != http.StatusOK {
			return false, fmt.Errorf("%s: %s\n%s", url, response.Status, body)
		}
		return true, nil
	}
}
