// Package testca makes a certificate authority for a test, and what it signs.
package testca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// CA is a certificate authority, whose certificate is in File, in PEM form.
type CA struct {
	Cert *x509.Certificate
	File string

	dir string
	key *ecdsa.PrivateKey
}

// New makes an authority that writes its files into the folder dir.
func New(dir string) (*CA, error) {
	a := &CA{dir: dir}
	var err error
	a.Cert, a.key, err = sign(nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true,
	}, time.Hour)
	if err != nil {
		return nil, err
	}
	a.File, _, err = write(dir, "ca", a.Cert, a.key)
	return a, err
}

// Issue signs a certificate for a name and its addresses that is good for a
// time from now; when the time is negative, it ended that long ago. It gives
// the paths of the certificate and of its key.
func (a *CA) Issue(name string, good time.Duration, addresses ...net.IP) (cert, key string, err error) {
	c, k, err := sign(a, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, good)
	if err != nil {
		return "", "", err
	}
	if good < 0 {
		name += "-expired"
	}
	return write(a.dir, name, c, k)
}

func sign(a *CA, c *x509.Certificate, good time.Duration) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	c.SerialNumber, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(good)
	c.NotBefore = time.Now().Add(-24 * time.Hour)
	parent, parentKey := c, key
	if a != nil {
		parent, parentKey = a.Cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, nil, err
	}
	out, err := x509.ParseCertificate(der)
	return out, key, err
}

func write(dir, name string, c *x509.Certificate, k *ecdsa.PrivateKey) (cert, key string, err error) {
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return "", "", err
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: c.Raw}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			return "", "", err
		}
	}
	return cert, key, nil
}
