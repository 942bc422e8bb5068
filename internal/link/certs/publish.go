package certs

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Publishing says where the CA is published.
type Publishing struct {
	// ConfigMap is the one whose key ca.crt gets the CA. Empty: none. Else Client and Namespace are
	// where it is.
	ConfigMap string
	Client    kubernetes.Interface
	Namespace string
	// APIService is the one whose caBundle gets the CA. Empty: none. Else Dynamic is how to reach it.
	APIService string
	Dynamic    dynamic.Interface
}

func (p Publishing) check() error {
	switch {
	case p.ConfigMap != "" && p.Client == nil:
		return errors.New("certs: Publishing.Client is missing")
	case p.ConfigMap != "" && p.Namespace == "":
		return errors.New("certs: Publishing.Namespace is missing")
	case p.APIService != "" && p.Dynamic == nil:
		return errors.New("certs: Publishing.Dynamic is missing")
	}
	return nil
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// publisher keeps the CA in the places where clients look for it.
type publisher struct {
	Publishing
	program string
	log     logr.Logger
	// configMap and apiService remember what others have written there.
	configMap, apiService strangers
	// absent is set while there is no APIService, which has been logged.
	absent bool
}

func newPublisher(program string, p Publishing, log logr.Logger) *publisher {
	return &publisher{Publishing: p, program: program, log: log}
}

// publish returns nil once the bundle is in all places. An APIService that does not exist needs none.
func (p *publisher) publish(ctx context.Context, bundle []*x509.Certificate) error {
	var failed []error
	if p.ConfigMap != "" {
		if err := again(func() error { return p.toConfigMap(ctx, bundle) }); err != nil {
			failed = append(failed, fmt.Errorf("ConfigMap %s/%s: %w", p.Namespace, p.ConfigMap, err))
		}
	}
	if p.APIService != "" {
		if err := again(func() error { return p.toAPIService(ctx, bundle) }); err != nil {
			failed = append(failed, fmt.Errorf("APIService %s: %w", p.APIService, err))
		}
	}
	return errors.Join(failed...)
}

// again repeats what another replica was faster in.
func again(try func() error) error {
	for race := 1; ; race++ {
		if err := try(); !lostRace(err) || race == races {
			return err
		}
	}
}

// toConfigMap writes the bundle for nodes, if it is not there.
func (p *publisher) toConfigMap(ctx context.Context, bundle []*x509.Certificate) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	configMaps := p.Client.CoreV1().ConfigMaps(p.Namespace)
	before, err := configMaps.Get(ctx, p.ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: p.ConfigMap, Namespace: p.Namespace, Labels: madeBy(p.program)},
			Data:       map[string]string{keyCA: string(encodeCerts(bundle...))},
		}, metav1.CreateOptions{})
		if err == nil {
			p.log.Info("The CA is published", "configMap", p.ConfigMap, "authorities", subjects(bundle))
		}
		return err
	}
	if err != nil {
		return err
	}
	text, right := p.configMap.merge([]byte(before.Data[keyCA]), bundle)
	if right {
		return nil
	}
	after := before.DeepCopy()
	if after.Data == nil {
		after.Data = make(map[string]string, 1)
	}
	after.Data[keyCA] = string(text)
	if _, err := configMaps.Update(ctx, after, metav1.UpdateOptions{}); err != nil {
		return err
	}
	p.log.Info("The CA is published", "configMap", p.ConfigMap, "authorities", subjects(bundle))
	return nil
}

// toAPIService writes the bundle for the API server, if it is not there. It changes no other field.
func (p *publisher) toAPIService(ctx context.Context, bundle []*x509.Certificate) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	services := p.Dynamic.Resource(apiServices)
	before, err := services.Get(ctx, p.APIService, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if !p.absent {
			p.log.Info("There is no APIService, so the API server does not know this server; looking again", "apiService", p.APIService)
		}
		p.absent = true
		return nil
	}
	if err != nil {
		return err
	}
	p.absent = false
	if insecure, _, _ := unstructured.NestedBool(before.Object, "spec", "insecureSkipTLSVerify"); insecure {
		return errors.New("it has insecureSkipTLSVerify, which excludes a caBundle: remove that field")
	}
	encoded, _, _ := unstructured.NestedString(before.Object, "spec", "caBundle")
	current, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		current = nil
	}
	text, right := p.apiService.merge(current, bundle)
	if right {
		return nil
	}
	// With the resource version the write fails if another was faster.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": before.GetResourceVersion()},
		"spec":     map[string]any{"caBundle": base64.StdEncoding.EncodeToString(text)},
	})
	if err != nil {
		return err
	}
	if _, err := services.Patch(ctx, p.APIService, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	p.log.Info("The CA is published", "apiService", p.APIService, "authorities", subjects(bundle))
	return nil
}

// subjects returns the names of certificates.
func subjects(certs []*x509.Certificate) []string {
	names := make([]string, len(certs))
	for i, cert := range certs {
		names[i] = cert.Subject.String()
	}
	return names
}
