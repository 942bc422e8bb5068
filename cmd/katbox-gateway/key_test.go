package main

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func refuse(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errRefused }

// TestReplicasShareTheKey, and leave alone what else is in the Secret.
func TestReplicasShareTheKey(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "katbox", Name: "shared"},
		Data:       map[string][]byte{"tls.key": []byte("x"), continueKey: []byte("short")},
	}
	client := fake.NewClientset(secret)
	secrets := client.CoreV1().Secrets("katbox")
	var keys [2][]byte
	for i := range keys {
		key, err := sharedKey(t.Context(), secrets, "shared", logr.Discard())
		if err != nil || len(key) != 32 {
			t.Fatalf("%d bytes, %v", len(key), err)
		}
		keys[i] = key
	}
	if !bytes.Equal(keys[0], keys[1]) {
		t.Error("the replicas have different keys")
	}
	after, err := secrets.Get(t.Context(), "shared", metav1.GetOptions{})
	if err != nil || string(after.Data["tls.key"]) != "x" {
		t.Errorf("the Secret has %v, %v", after.Data, err)
	}
}

// TestFirstReplicaWins: the other takes what it wrote.
func TestFirstReplicaWins(t *testing.T) {
	won := bytes.Repeat([]byte("w"), 32)
	client := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "katbox", Name: "shared"}})
	var lost atomic.Bool
	client.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if lost.Swap(true) {
			return false, nil, nil
		}
		err := client.Tracker().Update(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "katbox", Name: "shared"}, Data: map[string][]byte{continueKey: won},
		}, "katbox")
		if err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "shared", errRefused)
	})
	key, err := sharedKey(t.Context(), client.CoreV1().Secrets("katbox"), "shared", logr.Discard())
	if err != nil || !bytes.Equal(key, won) || !lost.Load() {
		t.Errorf("the key is %q, %v, want that of the other replica", key, err)
	}
}

// TestNoKeyWithoutTheAPIServer: the wait ends with its context.
func TestNoKeyWithoutTheAPIServer(t *testing.T) {
	client := fake.NewClientset()
	ctx, cancel := context.WithCancel(t.Context())
	client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel()
		return true, nil, errRefused
	})
	if _, err := sharedKey(ctx, client.CoreV1().Secrets("katbox"), "shared", logr.Discard()); err == nil {
		t.Error("there is a key")
	}
}
