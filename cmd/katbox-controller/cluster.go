package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

const (
	// callLimit bounds one call of the API server at the start, retryInterval is the time between two.
	callLimit     = 10 * time.Second
	retryInterval = 2 * time.Second
)

// clients reach the API server.
type clients struct {
	resources client.WithWatch
	events    core.EventsGetter
	leases    coordination.LeasesGetter
	// core is for the port of the nodes.
	core   kubernetes.Interface
	scheme *runtime.Scheme
}

// connect makes the clients. They ask nothing yet.
func connect(o options) (c clients, err error) {
	config, err := clientConfig(o.kubeconfig)
	if err != nil {
		return c, err
	}
	config.UserAgent = programName + "/" + version
	// What is asked for follows from calls and from what arrays do, four requests at a time. A limit
	// here would let a burst of claims hold up the probes.
	config.QPS = -1
	c.scheme = runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(c.scheme), corev1.AddToScheme(c.scheme)); err != nil {
		return c, err
	}
	// The lease has a connection of its own, and a limit so short that a request that hangs can be
	// repeated before the deadline.
	leasing := rest.CopyConfig(config)
	leasing.Timeout = max(o.renewDeadline/2, time.Second)
	var failed [4]error
	c.resources, failed[0] = client.NewWithWatch(config, client.Options{Scheme: c.scheme, Mapper: mapper()})
	c.events, failed[1] = core.NewForConfig(config)
	c.leases, failed[2] = coordination.NewForConfig(leasing)
	c.core, failed[3] = kubernetes.NewForConfig(config)
	c.resources = crashing{c.resources, c.scheme}
	return c, errors.Join(failed[:]...)
}

// mapper knows the kinds that are used, so that nothing has to be discovered at the start.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion, corev1.SchemeGroupVersion})
	for _, kind := range []string{"PoolClass", "Pool", "PoolVolume", "PoolSnapshot", "PoolAttachment", "PoolNode"} {
		m.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolume"), meta.RESTScopeRoot)
	m.Add(schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotContent"}, meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
	return m
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("this is no pod with a ServiceAccount token: %w; give --kubeconfig", err)
	}
	return config, nil
}

// clusterID returns what tells this cluster from others that use the same arrays: the UID of a namespace
// that is there from the first to the last day. It waits for an API server that does not answer.
func clusterID(ctx context.Context, api client.Client, log logr.Logger) (string, error) {
	for logged := ""; ; {
		uid, err := tryClusterID(ctx, api)
		if err == nil {
			return string(uid), nil
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("waiting for the API server: %w", ctx.Err())
		}
		if why := err.Error(); why != logged {
			logged = why
			log.Info("the cluster's ID cannot be read, trying again", logkeys.Namespace, metav1.NamespaceSystem, logkeys.Cause, why)
		}
		_ = retry.Pause(ctx, retryInterval)
	}
}

func tryClusterID(ctx context.Context, api client.Client) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	system := &metav1.PartialObjectMetadata{}
	system.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := api.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", err
	}
	if system.UID == "" {
		return "", errors.New("the namespace has no UID")
	}
	return system.UID, nil
}
