package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// TestReplicasFindOneAnother: two gateways of one cluster take one another by the certificate in their Secret, and each is ready
// with and without the other.
func TestReplicasFindOneAnother(t *testing.T) {
	var at []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		at = append(at, l.Addr().String())
		l.Close()
	}
	one := newGateway(t, func(o *options, _ *fake.Clientset) { o.nodesEndpoint, o.replicas = at[0], strings.Join(at, ",") })
	one.eventually("the first is ready", func() error { return one.probe("/readyz", 200, "ok") })
	metricstest.Of(t, one.counted).Want(t, "alone", metricstest.Values{"katbox_gateway_replicas": 1})
	o, err := parse([]string{
		"--namespace=katbox", "--api-endpoint=127.0.0.1:0", "--nodes-endpoint=" + at[1], "--replicas=" + strings.Join(at, ","),
		"--http-endpoint=127.0.0.1:0", "--shutdown-delay=0s",
	}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	two := &gateway{
		t: t, ca: one.ca, cluster: one.cluster, counted: gatewaymetrics.New(version, revision), ended: make(chan struct{}),
		addresses: map[string]string{},
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(two.ended)
		two.err = live(ctx, o, two.cluster, two.counted, two.log())
	}()
	defer func() {
		stop()
		if err := two.wait(); err != nil {
			t.Error(err)
		}
	}()
	two.eventually("the second is ready", func() error { return two.probe("/readyz", 200, "ok") })
	for _, g := range []*gateway{one, two} {
		g.eventually("both are known", func() error {
			if n := metricstest.Of(t, g.counted)["katbox_gateway_replicas"]; n != 2 {
				return fmt.Errorf("%v replicas are known", n)
			}
			return nil
		})
	}
}
