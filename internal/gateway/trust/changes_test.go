package trust_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/katbox/katbox/internal/gateway/trust"
)

func TestStartRefuses(t *testing.T) {
	proxies, clients := newAuthority("proxies", nil), newAuthority("clients", nil)
	root := newAuthority("root", nil)
	between := newAuthority("between", root)
	for _, test := range []struct {
		name   string
		config *corev1.ConfigMap
		change func(data map[string]string)
		want   string
	}{
		{"T3: all users may", configMap(clients, clients, `[]`), nil, "any client with a certificate of the cluster could"},
		{"T3: null", configMap(clients, clients, `null`), nil, "could claim to be any user"},
		{"T3: the same key", configMap(clients.renewed(), clients, `[]`), nil, "could claim to be any user"},
		{"T3: among others", configMap(proxies, clients, `[]`), func(data map[string]string) {
			data["requestheader-client-ca-file"] += clients.pem()
		}, "could claim to be any user"},
		{"T3: a CA of the CA", configMap(root, newAuthority("clients", root), `[]`), nil, "could claim to be any user"},
		{"T3: a CA of a CA of the CA", configMap(root, between, `[]`), func(data map[string]string) {
			data["client-ca-file"] += newAuthority("clients", between).pem()
		}, "could claim to be any user"},
		{"no CA", configMap(proxies, clients, `[]`), func(data map[string]string) { delete(data, "requestheader-client-ca-file") },
			"requestheader-client-ca-file is missing"},
		{"damaged CA", configMap(proxies, clients, `[]`), func(data map[string]string) { data["requestheader-client-ca-file"] = "x" },
			"requestheader-client-ca-file is no certificate"},
		{"damaged CA of users", configMap(proxies, clients, `[]`), func(data map[string]string) { data["client-ca-file"] = "x" },
			"client-ca-file is no certificate"},
		{"no names", configMap(proxies, clients, ``), func(data map[string]string) { delete(data, "requestheader-allowed-names") },
			"requestheader-allowed-names is not a list"},
		{"empty name", configMap(proxies, clients, `[""]`), nil, `requestheader-allowed-names contains ""`},
		{"damaged names", configMap(proxies, clients, `"front-proxy-client"`), nil, "requestheader-allowed-names is not a list"},
		{"no header for the user", configMap(proxies, clients, `[]`), func(data map[string]string) {
			data["requestheader-username-headers"] = `[]`
		}, "requestheader-username-headers is empty"},
		{"empty prefix", configMap(proxies, clients, `[]`), func(data map[string]string) { data["requestheader-extra-headers-prefix"] = `[" "]` },
			"requestheader-extra-headers-prefix contains"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.change != nil {
				test.change(test.config.Data)
			}
			a, err := trust.NewAuthenticator(trust.AuthenticatorConfig{Client: fake.NewClientset(test.config), Log: new(lines).logger()})
			if err != nil {
				t.Fatal(err)
			}
			err = a.Start(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, test.want)
			}
			if a.Ready() == nil {
				t.Error("ready")
			}
		})
	}
}

func TestSameCAWithNames(t *testing.T) {
	clients := newAuthority("clients", nil)
	g := start(t, configMap(clients, clients, `["front-proxy-client"]`))
	code, got, err := g.ask(t, g.caller(t, clients.issue("front-proxy-client", x509.ExtKeyUsageClientAuth)), alice)
	if err != nil || code != http.StatusOK || got.User != "alice" {
		t.Error(code, got, err)
	}
	code, got, err = g.ask(t, g.caller(t, clients.issue("mallory", x509.ExtKeyUsageClientAuth)), alice)
	if err != nil || code != http.StatusUnauthorized || got.User != "" {
		t.Error(code, got, err)
	}
}

func TestStartWaitsForTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		log := new(lines)
		answers := []error{
			errors.New("connection refused"),
			apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "extension-apiserver-authentication", errors.New("no role")),
			apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "extension-apiserver-authentication"),
		}
		asked := 0
		client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			asked++
			return true, nil, answers[min(asked, len(answers))-1]
		})
		a, err := trust.NewAuthenticator(trust.AuthenticatorConfig{Client: client, Log: log.logger()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		if err := a.Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Start: %v", err)
		}
		// After 0, 1, 3, 7, 15, 30 and 45 s.
		if asked != 7 {
			t.Errorf("asked %d times in 50 s", asked)
		}
		for _, want := range []string{"connection refused", "extension-apiserver-authentication-reader"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("logged %s, want %s", log, want)
			}
		}
		if err := a.Ready(); !errors.Is(err, trust.ErrUnavailable) {
			t.Errorf("Ready: %v", err)
		}
		a.Wait()
	})
}

// update replaces the ConfigMap.
func (g *gateway) update(t *testing.T, config *corev1.ConfigMap) {
	t.Helper()
	if _, err := g.client.CoreV1().ConfigMaps("kube-system").Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestReplacedCA(t *testing.T) {
	before, after, clients := newAuthority("proxies", nil), newAuthority("proxies", nil), newAuthority("clients", nil)
	g := start(t, configMap(before, clients, `["p"]`))
	old, renewed := before.issue("p", x509.ExtKeyUsageClientAuth), after.issue("p", x509.ExtKeyUsageClientAuth)
	open := g.caller(t, old)
	if code, _, err := g.ask(t, open, alice); err != nil || code != http.StatusOK {
		t.Fatal(code, err)
	}
	if _, _, err := g.ask(t, g.caller(t, renewed), alice); err == nil {
		t.Fatal("the new CA is believed before it is the cluster's")
	}
	g.update(t, configMap(after, clients, `["p"]`))
	eventually(t, "the old certificate is refused on the open connection", func() bool {
		code, _, err := g.ask(t, open, alice)
		if err != nil {
			t.Fatalf("the connection is gone: %v", err)
		}
		return code == http.StatusUnauthorized
	})
	if _, _, err := g.ask(t, g.caller(t, old), alice); err == nil {
		t.Error("a new connection with the old certificate")
	}
	if code, got, err := g.ask(t, g.caller(t, renewed), alice); err != nil || code != http.StatusOK || got.User != "alice" {
		t.Errorf("the new certificate: %d %+v %v", code, got, err)
	}
}

func TestReplacedNames(t *testing.T) {
	proxies := newAuthority("proxies", nil)
	g := start(t, configMap(proxies, nil, `["p","q"]`))
	q := g.caller(t, proxies.issue("q", x509.ExtKeyUsageClientAuth))
	if code, got, err := g.ask(t, q, alice); err != nil || code != http.StatusOK {
		t.Fatal(code, got, err)
	}
	g.update(t, configMap(proxies, nil, `["p"]`))
	eventually(t, "q is refused", func() bool {
		code, _, _ := g.ask(t, q, alice)
		return code == http.StatusUnauthorized
	})
}

func TestUnsafeWhileRunning(t *testing.T) {
	proxies, clients := newAuthority("proxies", nil), newAuthority("clients", nil)
	good := configMap(proxies, clients, `["p"]`)
	g := start(t, good)
	p := proxies.issue("p", x509.ExtKeyUsageClientAuth)
	open := g.caller(t, p)
	if code, _, err := g.ask(t, open, alice); err != nil || code != http.StatusOK {
		t.Fatal(code, err)
	}
	unsafe := configMap(proxies, clients, `[]`)
	unsafe.Data["requestheader-client-ca-file"] += clients.pem()
	g.update(t, unsafe)
	eventually(t, "not ready", func() bool { return g.Ready() != nil })
	if code, got, err := g.ask(t, open, alice); err != nil || code != http.StatusUnauthorized {
		t.Errorf("still believed: %d %+v %v", code, got, err)
	}
	if _, got, err := g.ask(t, g.caller(t, clients.issue("p", x509.ExtKeyUsageClientAuth)), alice); err == nil {
		t.Errorf("a user's certificate: %+v", got)
	}
	g.update(t, good)
	eventually(t, "ready again", func() bool { return g.Ready() == nil })
	if code, _, err := g.ask(t, g.caller(t, p), alice); err != nil || code != http.StatusOK {
		t.Error(code, err)
	}
}

func TestDamagedOrGoneWhileRunning(t *testing.T) {
	proxies, clients := newAuthority("proxies", nil), newAuthority("clients", nil)
	g := start(t, configMap(proxies, clients, `["p"]`))
	client := g.caller(t, proxies.issue("p", x509.ExtKeyUsageClientAuth))
	believed := func() {
		t.Helper()
		if code, got, err := g.ask(t, client, alice); err != nil || code != http.StatusOK {
			t.Errorf("%d %+v %v", code, got, err)
		}
	}
	damaged := configMap(proxies, clients, `["p"]`)
	damaged.Data["requestheader-client-ca-file"] = "damaged"
	g.update(t, damaged)
	logged := func(text string) func() bool {
		return func() bool { return strings.Contains(g.log.String(), text+"; what it said last stays in force") }
	}
	eventually(t, "the damage is logged", logged("is damaged"))
	believed()
	if err := g.client.CoreV1().ConfigMaps("kube-system").Delete(t.Context(), damaged.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is logged", logged("is gone"))
	believed()
}
