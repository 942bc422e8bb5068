package kubeapi

import (
	"context"
	"fmt"

	"github.com/katbox/katbox/internal/model/volume"
)

// Keys of a Secret with what a node logs in with: those of Kubernetes' type kubernetes.io/iscsi-chap.
const (
	chapUserKey   = "node.session.auth.username"
	chapSecretKey = "node.session.auth.password"
)

// CHAP returns what a node logs in with, from a Secret that a publish context names.
func (c *Client) CHAP(ctx context.Context, secret string) (user, password string, err error) {
	r := request{verb: "get", resource: "secrets", namespace: c.cfg.CHAPNamespace, name: secret}
	var s struct {
		Data map[string][]byte `json:"data"`
	}
	if err := c.do(ctx, r, &s); err != nil {
		return "", "", err
	}
	for _, key := range []string{chapUserKey, chapSecretKey} {
		if len(s.Data[key]) == 0 {
			return "", "", fmt.Errorf("%w: the Secret %s/%s has no %s; the controller of the pools writes it when it next asks the array",
				volume.ErrUnavailable, c.cfg.CHAPNamespace, secret, key)
		}
	}
	return string(s.Data[chapUserKey]), string(s.Data[chapSecretKey]), nil
}

// ClusterID returns what tells this cluster from others: the UID of the namespace kube-system.
func (c *Client) ClusterID(ctx context.Context) (string, error) {
	var namespace struct {
		Metadata metadata `json:"metadata"`
	}
	if err := c.do(ctx, request{verb: "get", resource: "namespaces", name: "kube-system"}, &namespace); err != nil {
		return "", err
	}
	if namespace.Metadata.UID == "" {
		return "", fmt.Errorf("%w: get the Namespace kube-system: it has no UID", volume.ErrUnavailable)
	}
	return namespace.Metadata.UID, nil
}
