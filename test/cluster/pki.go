package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki is a certificate authority for one cluster, one serving certificate that all its servers share, and the key that
// signs service account tokens. Elliptic keys, because generating RSA ones would be the slowest step of a start.
type pki struct {
	dir string // holds ca.crt, tls.crt, tls.key, sa.key; the names webhook servers look for
	ca  []byte // PEM
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// newPKI reads the authority in dir, or makes one if dir has none.
func newPKI(dir string) (*pki, error) {
	p := &pki{dir: dir}
	if ca, err := os.ReadFile(p.path("ca.crt")); err == nil {
		p.ca = ca
		return p, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := p.generate(); err != nil {
		return nil, fmt.Errorf("generating certificates: %w", err)
	}
	return p, nil
}

func (p *pki) generate() error {
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "berth test cluster"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	serving := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	var keys [3]*ecdsa.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return err
		}
	}
	caKey, servingKey, tokenKey := keys[0], keys[1], keys[2]
	caDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	if err != nil {
		return err
	}
	servingDER, err := x509.CreateCertificate(rand.Reader, serving, authority, &servingKey.PublicKey, caKey)
	if err != nil {
		return err
	}
	p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	if err := p.writeKey("tls.key", servingKey); err != nil {
		return err
	}
	if err := p.writeKey("sa.key", tokenKey); err != nil {
		return err
	}
	if err := p.write("tls.crt", "CERTIFICATE", servingDER); err != nil {
		return err
	}
	// Last: its presence says that the rest is there.
	return os.WriteFile(p.path("ca.crt"), p.ca, 0o600)
}

func (p *pki) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return p.write(name, "EC PRIVATE KEY", der)
}

func (p *pki) write(name, kind string, der []byte) error {
	return os.WriteFile(p.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
