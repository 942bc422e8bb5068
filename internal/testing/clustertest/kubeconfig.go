package clustertest

import (
	"encoding/pem"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// URL returns the address of the API server.
func (c *Cluster) URL() string { return c.http.URL }

func (c *Cluster) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.http.Certificate().Raw})
}

// Config returns what a user reaches the API with.
func (c *Cluster) Config(user string) *rest.Config {
	return &rest.Config{Host: c.http.URL, BearerToken: user, TLSClientConfig: rest.TLSClientConfig{CAData: c.authority()}}
}

// Kubeconfig writes the file of a user, whose contexts are each for a namespace: ci, which is the current
// one, and etl.
func (c *Cluster) Kubeconfig(user string) string {
	c.t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: c.http.URL, CertificateAuthorityData: c.authority()}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: user}
	for _, name := range []string{"ci", "etl"} {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "user", Namespace: name}
	}
	config.CurrentContext = "ci"
	text, err := clientcmd.Write(*config)
	if err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(c.t.TempDir(), "config")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}
