package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Client-side limits would hide everything else that a test measures.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// identity is a user that authenticates with a static token.
type identity struct {
	user   string
	groups []string
	token  string
}

// The names are those of a real installation, so that RBAC, admission policies and audit see what they would see there.
func newIdentities() map[string]identity {
	serviceAccount := func(namespace, name string) identity {
		return identity{
			user:   "system:serviceaccount:" + namespace + ":" + name,
			groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
		}
	}
	identities := map[string]identity{
		"admin":           {user: "admin", groups: []string{"system:masters"}},
		ControllerManager: {user: "system:kube-controller-manager"},
		Scheduler:         {user: "system:kube-scheduler"},
		Kueue:             serviceAccount(kueueNamespace, kueueServiceAccount),
		KWOK:              serviceAccount("kube-system", "kwok-controller"),
	}
	for name, id := range identities {
		secret := make([]byte, 16)
		_, _ = rand.Read(secret) // never fails
		id.token = hex.EncodeToString(secret)
		identities[name] = id
	}
	return identities
}

// tokenFile renders identities for kube-apiserver's --token-auth-file.
func tokenFile(identities map[string]identity) []byte {
	var b strings.Builder
	for name, id := range identities {
		fmt.Fprintf(&b, "%s,%s,%s,%q\n", id.token, id.user, name, strings.Join(id.groups, ","))
	}
	return []byte(b.String())
}

// RESTConfig returns a configuration for the cluster's administrator, a member of system:masters. The caller may change
// it.
func (c *Cluster) RESTConfig() *rest.Config { return c.configFor("admin") }

func (c *Cluster) configFor(identityName string) *rest.Config {
	cfg := c.anonymous()
	cfg.BearerToken = c.identities[identityName].token
	return cfg
}

func (c *Cluster) anonymous() *rest.Config {
	return &rest.Config{
		Host:            "https://" + address(c.apiPort),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.pki.ca},
		QPS:             clientQPS,
		Burst:           clientBurst,
	}
}

// RESTConfigFor returns a configuration that acts as user, by impersonation. system:authenticated is added by the API
// server. The user needs no object; what it may do is what RBAC grants it.
func (c *Cluster) RESTConfigFor(user string, groups ...string) *rest.Config {
	cfg := c.RESTConfig()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return cfg
}

// ServiceAccountConfig returns a configuration with a token that the API server issued for the service account, valid
// for 24 hours. The account is created if it does not exist, its namespace is not.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	accounts := c.Client().CoreV1().ServiceAccounts(namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	day := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	answer, err := accounts.CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	cfg := c.anonymous()
	cfg.BearerToken = answer.Status.Token
	return cfg, nil
}

// WriteKubeconfig writes cfg, as returned by one of the methods above, to a kubeconfig at path with mode 0600.
func (c *Cluster) WriteKubeconfig(path string, cfg *rest.Config) error {
	const name = "berth"
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			Token:             cfg.BearerToken,
			Impersonate:       cfg.Impersonate.UserName,
			ImpersonateGroups: cfg.Impersonate.Groups,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
