package pool

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
)

// Keys of the Secret with what initiators log in to a pool's array with: those of Kubernetes' own type
// for it.
const (
	chapUserKey   = "node.session.auth.username"
	chapSecretKey = "node.session.auth.password"
)

// chapSecretType is Kubernetes' type for such a Secret.
const chapSecretType corev1.SecretType = "kubernetes.io/iscsi-chap"

// saveCHAP makes the Secret for the nodes say what the array says, and returns its name; empty where
// the array asks for no login.
func saveCHAP(ctx context.Context, e *env.Environment, pool string, chap array.CHAP) (string, error) {
	if chap.User == "" {
		return "", nil
	}
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.CHAPNamespace, Name: pools.CHAPSecretName(pool)},
		Type:       chapSecretType,
		Data:       map[string][]byte{chapUserKey: []byte(chap.User), chapSecretKey: []byte(chap.Secret)},
	}
	var have corev1.Secret
	err := e.Resources.Get(ctx, client.ObjectKeyFromObject(want), &have)
	switch {
	case apierrors.IsNotFound(err):
		err = e.Resources.Create(ctx, want)
	case err == nil && !maps.EqualFunc(have.Data, want.Data, func(a, b []byte) bool { return string(a) == string(b) }):
		have.Data = want.Data
		err = e.Resources.Update(ctx, &have)
	}
	if err != nil {
		err = fmt.Errorf("write the Secret %s/%s for the nodes: %w", want.Namespace, want.Name, err)
	}
	return want.Name, err
}

// removeCHAP deletes the Secret of a pool that goes.
func removeCHAP(ctx context.Context, e *env.Environment, pool string) error {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.CHAPNamespace, Name: pools.CHAPSecretName(pool)}}
	if err := client.IgnoreNotFound(e.Resources.Delete(ctx, s)); err != nil {
		return fmt.Errorf("delete the Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}
