package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/katbox/katbox/internal/lib/ops"
	"github.com/katbox/katbox/internal/link/certs"
	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/local"
)

// nodesOptions are the flags of the port that nodes with pools on their disks connect to.
type nodesOptions struct {
	endpoint, service, serviceAccount, selector, audience string
	certSecret, certDir, caConfigMap                      string
}

func (o *nodesOptions) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&o.endpoint, "nodes-endpoint", "",
		"address that the daemons of nodes with pools on their disks connect to, such as \":9444\"; empty for no such pools")
	flags.StringVar(&o.service, "nodes-service", "katbox-controller-nodes",
		"headless Service by which the daemons reach the controller, for its certificate")
	flags.StringVar(&o.serviceAccount, "nodes-service-account", "katbox",
		"ServiceAccount of the daemons, in --namespace; no other may connect")
	flags.StringVar(&o.selector, "nodes-selector", "app.kubernetes.io/name=katbox", "labels of the daemons' pods")
	flags.StringVar(&o.audience, "nodes-audience", "katbox-controller", "audience of the tokens that the daemons show")
	flags.StringVar(&o.certSecret, "nodes-cert-secret", "katbox-controller-tls",
		"Secret in --namespace for the certificate that the controller makes and renews; all replicas share it")
	flags.StringVar(&o.certDir, "nodes-cert-dir", "",
		"directory with tls.crt, tls.key and ca.crt, read again when they change; empty for a certificate that the controller makes")
	flags.StringVar(&o.caConfigMap, "nodes-ca-configmap", "katbox-controller-ca",
		"ConfigMap in --namespace that gets the CA of the certificate, for the daemons")
}

// check returns the first of these flags that is not acceptable, and why.
func (o nodesOptions) check() error {
	if o.endpoint == "" {
		return nil
	}
	selector := error(nil)
	if parsed, err := labels.Parse(o.selector); err != nil {
		selector = err
	} else if parsed.Empty() {
		selector = errors.New("it selects all pods")
	}
	audience := error(nil)
	if o.audience == "" {
		audience = errors.New("it is empty: a token for anything would do")
	}
	for _, checked := range []struct {
		flag string
		err  error
	}{
		{"nodes-endpoint", ops.CheckEndpoint(o.endpoint)},
		{"nodes-service", checkName(o.service, validation.IsDNS1035Label)},
		{"nodes-service-account", checkName(o.serviceAccount, validation.IsDNS1123Subdomain)},
		{"nodes-selector", selector},
		{"nodes-audience", audience},
		{"nodes-cert-secret", checkName(o.certSecret, validation.IsDNS1123Subdomain)},
		{"nodes-ca-configmap", checkName(o.caConfigMap, validation.IsDNS1123Subdomain)},
	} {
		if checked.err != nil {
			return fmt.Errorf("--%s: %w", checked.flag, checked.err)
		}
	}
	return nil
}

// startNodes opens the port for nodes, if there is to be one. It does not wait for a certificate: arrays need none. All
// replicas are connected, and only the leader makes volumes.
func (i *instance) startNodes(ctx context.Context) error {
	o := i.o.nodes
	if o.endpoint == "" {
		return nil
	}
	log := i.log.WithName("nodes")
	core := i.cluster.core
	pods, err := hub.NewPods(hub.PodsConfig{Client: core.CoreV1(), Namespace: i.o.namespace, Selector: o.selector, Log: log})
	if err != nil {
		return err
	}
	i.nodes = &nodePools{known: map[string]nodeTold{}}
	registry, err := hub.New(hub.Config{
		Reviewer: hub.NewTokenReviews(core.AuthenticationV1().TokenReviews(), o.audience), Expected: pods, Pools: i.nodes,
		Namespace: i.o.namespace, ServiceAccount: o.serviceAccount, Log: log,
	})
	if err != nil {
		return err
	}
	cert, err := i.certificate(log)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.endpoint)
	if err != nil {
		return fmt.Errorf("--nodes-endpoint: %w", err)
	}
	server := registry.Server(&tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: cert.GetCertificate})
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	parts.Go(func() { pods.Run(life, registry.PodGone) })
	parts.Go(func() {
		if err := cert.Start(life); err != nil && life.Err() == nil {
			i.failed <- fmt.Errorf("--nodes-cert-dir: %w", err)
		}
		<-life.Done()
		cert.Wait()
	})
	parts.Go(func() {
		if err := server.ServeTLS(registry.Bounded(l), "", ""); !errors.Is(err, http.ErrServerClosed) && life.Err() == nil {
			i.failed <- fmt.Errorf("--nodes-endpoint: serve: %w", err)
		}
	})
	i.onStop(func(context.Context) {
		end()
		registry.Close()
		_ = server.Close()
		parts.Wait()
	})
	log.Info("listening", "for", "nodes-endpoint", "address", l.Addr().String())
	return nil
}

// certificate is what nodes see.
func (i *instance) certificate(log logr.Logger) (certs.Source, error) {
	o, core := i.o.nodes, i.cluster.core
	publishing := certs.Publishing{Client: core, Namespace: i.o.namespace, ConfigMap: o.caConfigMap}
	ends := func(time.Time) {} // the log says it
	if o.certDir != "" {
		return certs.NewFiles(certs.FilesConfig{Program: programName, Directory: o.certDir, Publishing: publishing, Ends: ends, Log: log})
	}
	return certs.NewBuiltin(certs.BuiltinConfig{
		Program: programName, Client: core, Namespace: i.o.namespace, Secret: o.certSecret, Publishing: publishing, Ends: ends, Log: log,
		Names: []string{o.service + "." + i.o.namespace + ".svc", o.service + "." + i.o.namespace + ".svc.cluster.local"},
	})
}

// nodePools passes on what nodes tell, once this replica leads. Until then it remembers the last of each.
type nodePools struct {
	mu    sync.Mutex
	known map[string]nodeTold
	// to is nil until this replica leads.
	to hub.Pools
}

// nodeTold is what a node has told last.
type nodeTold struct {
	version string
	on      local.Pools
	pools   []local.Pool
}

// NodePools takes in which pools a node has.
func (n *nodePools) NodePools(node, version string, on local.Pools, all []local.Pool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known[node] = nodeTold{version, on, all}
	if n.to != nil {
		n.to.NodePools(node, version, on, all)
	}
}

// NodeAway takes in that a node is away.
func (n *nodePools) NodeAway(node string, on local.Pools) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, node)
	if n.to != nil {
		n.to.NodeAway(node, on)
	}
}

// lead tells all that is known, and from now on all that is new.
func (n *nodePools) lead(to hub.Pools) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.to = to
	for node, told := range n.known {
		to.NodePools(node, told.version, told.on, told.pools)
	}
}
