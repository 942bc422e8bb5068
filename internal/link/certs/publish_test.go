package certs

import (
	"bytes"
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// put replaces what is published in both places.
func (c *cluster) put(text []byte) {
	c.t.Helper()
	c.makeAPIService(func(spec map[string]any) { spec["caBundle"] = base64.StdEncoding.EncodeToString(text) })
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: testConfigMap, Namespace: testNamespace, Labels: map[string]string{"mine": "yes"}},
		Data:       map[string]string{"ca.crt": string(text), "other": "of a person"},
	}
	c.stamp(configMap)
	c.drop(c.core.Tracker(), configMaps, testNamespace, testConfigMap)
	c.must(c.core.Tracker().Create(configMaps, configMap, testNamespace))
}

func TestCorrections(t *testing.T) {
	another := func(life time.Duration) authority { return must(newAuthority(testSecret, time.Now().Add(life-caLife))) }
	for _, test := range []struct {
		name string
		// write returns what somebody writes in place of what is right, and what of it stays for 10 min.
		write func(right []byte) (text, kept []byte)
	}{
		{"empty", func([]byte) ([]byte, []byte) { return nil, nil }},
		{"garbage", func([]byte) ([]byte, []byte) { return []byte("garbage"), nil }},
		{"garbage behind", func(right []byte) ([]byte, []byte) { return append(bytes.Clone(right), "garbage"...), nil }},
		{"a key", func([]byte) ([]byte, []byte) { return must(encodeKey(another(day).key)), nil }},
		{"another CA", func([]byte) ([]byte, []byte) {
			text := encodeCerts(another(day).cert)
			return text, text
		}},
		{"an additional CA", func(right []byte) ([]byte, []byte) {
			text := encodeCerts(another(day).cert)
			return append(bytes.Clone(text), right...), text
		}},
		{"a CA that has ended", func([]byte) ([]byte, []byte) { return encodeCerts(another(-time.Second).cert), nil }},
		{"many CAs", func([]byte) ([]byte, []byte) {
			var many []byte
			for range strangersMost {
				many = append(many, encodeCerts(another(day).cert)...)
			}
			return append(bytes.Clone(many), encodeCerts(another(day).cert)...), many
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				r := c.newReplica()
				r.mustLook(t)
				right := c.published()
				text, kept := test.write(right)
				c.put(text)
				want := subjectSet(append(bytes.Clone(right), kept...))
				expect := func(when string) {
					t.Helper()
					r.mustLook(t)
					for place, text := range map[string][]byte{"ConfigMap": c.published(), "APIService": c.caBundle()} {
						if got := subjectSet(text); !reflect.DeepEqual(got, want) {
							t.Errorf("%s %s: %v, want %v", place, when, got, want)
						}
					}
				}
				expect("at once")
				time.Sleep(overlap - time.Second)
				expect("before 10 min are over")
				time.Sleep(2 * time.Second)
				want = subjectSet(right)
				expect("after 10 min")
				c.written()
				expect("later")
				if got := c.written(); len(got) > 0 {
					t.Errorf("wrote %v without need", got)
				}
				object, err := c.core.Tracker().Get(configMaps, testNamespace, testConfigMap)
				if err != nil {
					t.Fatal(err)
				}
				if configMap := object.(*corev1.ConfigMap); configMap.Labels["mine"] != "yes" || configMap.Data["other"] != "of a person" {
					t.Errorf("what others wrote is gone: %+v", configMap)
				}
			})
		})
	}
}

// subjectSet counts certificates by serial number.
func subjectSet(text []byte) map[string]int {
	set := make(map[string]int)
	for _, cert := range must(parseCerts(text)) {
		set[cert.SerialNumber.String()]++
	}
	return set
}

func TestNoAPIService(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.drop(c.dynamic.Tracker(), apiServices, "", testAPIService)
		r := c.newReplica()
		for range 3 {
			r.mustLook(t)
		}
		if n := strings.Count(r.log.String(), "There is no APIService"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		c.makeAPIService(nil)
		r.mustLook(t)
		c.trusted(r)
		object, err := c.dynamic.Tracker().Get(apiServices, "", testAPIService)
		if err != nil {
			t.Fatal(err)
		}
		spec, _, _ := unstructured.NestedMap(object.(*unstructured.Unstructured).Object, "spec")
		delete(spec, "caBundle")
		want := map[string]any{"group": "katbox.io", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15)}
		if !reflect.DeepEqual(spec, want) {
			t.Errorf("the rest is %v", spec)
		}
	})
}

func TestInsecureAPIService(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.makeAPIService(func(spec map[string]any) { spec["insecureSkipTLSVerify"] = true })
		c.written()
		r := c.newReplica()
		if err := r.look(t.Context()); err == nil || !strings.Contains(err.Error(), "remove that field") {
			t.Error(err)
		}
		for _, write := range c.written() {
			if write == "patch apiservices" {
				t.Error("it was patched")
			}
		}
		// Nodes can connect all the same.
		if err := connect(r, c.published(), testNames[0]); err != nil {
			t.Error(err)
		}
	})
}

func TestOnePlaceFails(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		refused := errors.New("refused")
		c.breaks(func(_, resource string) (bool, error) {
			if resource == "configmaps" {
				return false, refused
			}
			return false, nil
		})
		r := c.newReplica()
		if err := r.look(t.Context()); !errors.Is(err, refused) || !strings.Contains(err.Error(), "ConfigMap katbox/katbox-gateway-ca") {
			t.Error(err)
		}
		if err := connect(r, c.caBundle(), testNames[0]); err != nil {
			t.Error(err)
		}
	})
}

// TestDeletedSecret is how a person gets rid of a key that others have seen.
func TestDeletedSecret(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a, b := c.newReplica(), c.newReplica()
		a.mustLook(t)
		b.mustLook(t)
		before := c.published()
		c.dropSecret()
		a.mustLook(t)
		// The API server reaches the replica that does not know yet, too.
		c.trusted(b)
		b.mustLook(t)
		c.trusted(a)
		c.trusted(b)
		if connect(a, before, testNames[0]) == nil {
			t.Error("the CA is the one before")
		}
		time.Sleep(overlap)
		a.mustLook(t)
		b.mustLook(t)
		for serial := range subjectSet(before) {
			if subjectSet(c.published())[serial]+subjectSet(c.caBundle())[serial] > 0 {
				t.Error("the CA before is still published")
			}
		}
		if len(subjectSet(c.published())) != 1 {
			t.Errorf("%d CAs are published", len(subjectSet(c.published())))
		}
	})
}
