package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"k8s.io/klog/v2"

	"github.com/katbox/katbox/internal/gateway/archived"
	"github.com/katbox/katbox/internal/gateway/arrays"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/gateway/outcomes"
	"github.com/katbox/katbox/internal/gateway/owners"
	"github.com/katbox/katbox/internal/gateway/server"
	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/gateway/uploads"
	"github.com/katbox/katbox/internal/lib/logging"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/ops"
	"github.com/katbox/katbox/internal/lib/program"
	"github.com/katbox/katbox/internal/link/certs"
	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/link/replicas"
	"github.com/katbox/katbox/internal/link/satoken"
	"github.com/katbox/katbox/internal/model/resource"
)

const (
	// stopTimeout bounds the ordered stop, the others one step of it. With the longest delay before it
	// all ends before Kubernetes kills it.
	stopTimeout    = 14 * time.Second
	requestsLimit  = 5 * time.Second
	answersTimeout = time.Second
)

// run is the gateway with its log on stdout.
func run(ctx context.Context, o options, stdout io.Writer) error {
	counted := gatewaymetrics.New(version, revision)
	sink, err := logging.NewSink(o.logFormat, stdout, counted.LogLineDropped)
	if err != nil {
		return err
	}
	defer sink.Close(program.OutputTimeout)
	z, err := logging.New(o.logLevel, o.logFormat, sink)
	if err != nil {
		return err
	}
	log := zapr.NewLogger(z)
	klog.SetLogger(log.WithName("client-go"))
	cluster, err := connect(o.kubeconfig)
	if err != nil {
		return err
	}
	return live(ctx, o, cluster, counted, log)
}

// instance is one run of the gateway. Each part starts with what started before it.
type instance struct {
	o       options
	counted *gatewaymetrics.Metrics
	log     logr.Logger
	ready   *readiness
	// stops contains a function for each part that has started, and waits one for each part that ends
	// when their context does.
	stops []func(context.Context) error
	waits []func()
	// failed delivers why a port serves no more.
	failed chan error

	status     *ops.Server
	cluster    clients
	cert       certs.Source
	key        []byte
	trusted    *trust.Authenticator
	namespaces *trust.Namespaces
	owners     *owners.Owners
	// outcomes is nil with --outcomes=off.
	outcomes *outcomes.Outcomes
	pods     *hub.Pods
	replicas *replicas.Replicas
	registry *hub.Registry
	arrays   *arrays.Arrays
	fleet    *fleet.Fleet
	// archive and uploads are nil without --archive-bucket.
	archive *archived.Archive
	uploads *uploads.Uploads
}

// live starts the gateway bottom-up, serves until ctx ends or a part fails, and stops what has started
// in reverse.
func live(ctx context.Context, o options, cluster clients, counted *gatewaymetrics.Metrics, log logr.Logger) (err error) {
	log.Info("starting", "version", version, logkeys.Namespace, o.namespace, "certificate", o.certMode)
	status, err := ops.Start(ops.Config{Endpoint: o.httpEndpoint, Metrics: counted.Handler(), Log: log})
	if err != nil {
		return fmt.Errorf("--http-endpoint %s: %w", o.httpEndpoint, err)
	}
	i := &instance{
		o: o, cluster: cluster, counted: counted, log: log, status: status, ready: &readiness{}, failed: make(chan error, 2),
	}
	status.Recovered(func(context.Context) error { return nil })
	status.Serving(i.ready.check)

	// The parts live on while the gateway stops: what runs is answered to its end.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	i.onStop(func(context.Context) error {
		end()
		for _, wait := range i.waits {
			wait()
		}
		return nil
	})
	defer func() { err = errors.Join(err, i.stop()) }()
	interrupted := context.AfterFunc(ctx, end)
	for _, start := range []func(context.Context) error{
		i.startCert, i.startTrust, i.startNodes, i.listenForNodes, i.listenForServer,
	} {
		if err := start(life); err != nil {
			if ctx.Err() != nil {
				log.Info("stopping before all has started", logkeys.Cause, err.Error())
				return nil
			}
			return err
		}
	}
	if !interrupted() {
		return nil
	}
	log.Info("serving")
	select {
	case <-ctx.Done():
		log.Info("stopping")
		i.leave()
		return nil
	case err := <-i.failed:
		return err
	case err := <-status.Failed():
		return err
	}
}

// onStop adds the stop of a part that has started.
func (i *instance) onStop(stop func(context.Context) error) { i.stops = append(i.stops, stop) }

// leave waits until the API server asks another replica. This one is not ready from now on.
func (i *instance) leave() {
	i.status.Stopping()
	waiting, cancel := context.WithTimeout(context.Background(), i.o.shutdownDelay)
	defer cancel()
	<-waiting.Done()
}

// stop stops all parts, the last one first. The port for probes goes last: until then it reports that
// the gateway is stopping.
func (i *instance) stop() (err error) {
	i.status.Stopping()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, stop := range slices.Backward(i.stops) {
		err = errors.Join(err, stop(ctx))
	}
	ending, cancel := context.WithTimeout(context.Background(), answersTimeout)
	defer cancel()
	if err := i.status.Stop(ending); err != nil {
		i.log.Info("stopped answering", logkeys.Cause, err.Error())
	}
	i.log.Info("stopped")
	return err
}

// startCert waits for a certificate, and for the key of continue tokens.
func (i *instance) startCert(ctx context.Context) (err error) {
	publishing := certs.Publishing{
		Client: i.cluster.core, Namespace: i.o.namespace, ConfigMap: i.o.caConfigMap,
		Dynamic: i.cluster.dynamic, APIService: apiService,
	}
	ends := func(end time.Time) { i.counted.CertificateEnds(gatewaymetrics.Serving, end) }
	log := i.log.WithName("certificate")
	if i.o.certMode == givenCert {
		i.cert, err = certs.NewFiles(certs.FilesConfig{
			Program: programName, Directory: i.o.certDir, Publishing: publishing, Ends: ends, Log: log,
		})
	} else {
		i.cert, err = certs.NewBuiltin(certs.BuiltinConfig{
			Program: programName, Client: i.cluster.core, Namespace: i.o.namespace, Secret: i.o.certSecret, Names: i.o.names(),
			Publishing: publishing, Ends: ends, Log: log,
		})
	}
	if err != nil {
		return err
	}
	i.waits = append(i.waits, i.cert.Wait)
	if err := i.cert.Start(ctx); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	i.key, err = sharedKey(ctx, i.cluster.core.CoreV1().Secrets(i.o.namespace), i.o.certSecret, log)
	return err
}

// startTrust waits for the CA by which the API server is known. The namespaces come by and by.
func (i *instance) startTrust(ctx context.Context) (err error) {
	i.trusted, err = trust.NewAuthenticator(trust.AuthenticatorConfig{Client: i.cluster.core, Log: i.log.WithName("trust")})
	if err != nil {
		return err
	}
	i.waits = append(i.waits, i.trusted.Wait)
	if err := i.trusted.Start(ctx); err != nil {
		return err
	}
	i.ready.need(i.trusted.Ready)
	i.namespaces, err = trust.NewNamespaces(trust.NamespacesConfig{Client: i.cluster.metadata, Log: i.log.WithName("namespaces")})
	if err != nil {
		return err
	}
	i.waits = append(i.waits, i.namespaces.Wait)
	i.namespaces.Start(ctx)
	i.ready.need(func() error {
		if !i.namespaces.Synced() {
			return errors.New("starting: the namespaces are not known yet")
		}
		return nil
	})
	return nil
}

// startNodes prepares for nodes that connect.
func (i *instance) startNodes(ctx context.Context) (err error) {
	i.owners, err = owners.New(owners.Config{
		Pods: i.cluster.core.CoreV1(), Namespaces: i.namespaces, Metrics: i.counted, Log: i.log.WithName("owners"),
	})
	if err != nil {
		return err
	}
	i.pods, err = hub.NewPods(hub.PodsConfig{
		Client: i.cluster.core.CoreV1(), Namespace: i.o.namespace, Selector: i.o.nodeSelector, Log: i.log.WithName("nodes"),
	})
	if err != nil {
		return err
	}
	if err := i.startArchive(ctx); err != nil {
		return err
	}
	if err := i.startReplicas(); err != nil {
		return err
	}
	tokens, err := satoken.New(satoken.Config{Get: i.cluster.read, Audience: i.o.audience, Log: i.log.WithName("nodes")})
	if err != nil {
		return err
	}
	hubs := hub.Config{
		Replicas: i.replicas,
		Reviewer: hub.NewTokenReviews(i.cluster.core.AuthenticationV1().TokenReviews(), i.o.audience), Tokens: readTokens{tokens},
		Expected: i.pods, Known: i.pods.Synced(), Owners: i.owners, Namespace: i.o.namespace, ServiceAccount: i.o.nodeServiceAccount,
		Joined: func(node string) {
			if i.outcomes != nil {
				i.outcomes.Connected(node)
			}
		},
		Hash: resource.NodeHash, Metrics: i.counted, Log: i.log.WithName("nodes"),
	}
	if i.uploads != nil {
		hubs.Owners, hubs.Uploads = uploads.Sealing{Uploads: i.uploads}, i.uploads
	}
	i.registry, err = hub.New(hubs)
	if err != nil {
		return err
	}
	i.replicas.Of(i.registry)
	if err := i.startOutcomes(ctx); err != nil {
		return err
	}
	i.onStop(func(context.Context) error { i.registry.Close(); return nil })
	go i.pods.Run(ctx, i.registry.PodGone)
	i.counted.CountNodes(i.countNodes, i.countHere)
	go scaleGC(ctx, func() int { return i.registry.Counts().Connected })
	i.ready.need(func() error {
		select {
		case <-i.pods.Synced():
			return nil
		default:
			return errors.New("starting: the daemons' pods are not known yet")
		}
	})
	i.lookForReplicas(ctx)
	i.ready.settle(i.countSettled)
	reached := &reach{count: i.countNodes, log: i.log.WithName("nodes")}
	go reached.run(ctx)
	if err := i.startHolds(ctx); err != nil {
		return err
	}
	i.arrays, err = arrays.New(arrays.Config{Client: i.cluster.dynamic, Log: i.log.WithName("arrays")})
	if err != nil {
		return err
	}
	i.waits = append(i.waits, i.arrays.Wait)
	i.arrays.Start(ctx)
	fleets := fleet.Config{
		Nodes: fleetNodes{i.registry, i.arrays}, Namespaces: i.namespaces, Owners: i.owners, Key: i.key, Namespace: i.o.namespace,
		Log: i.log.WithName("fleet"), Dropped: func(_ string, entries int) { i.counted.EntriesDropped(entries) },
	}
	if i.archive != nil {
		fleets.Archive = i.archive
	}
	i.fleet, err = fleet.New(fleets)
	return err
}

// listenForNodes opens the port for the daemons.
func (i *instance) listenForNodes(ctx context.Context) error {
	config := serverConfig(i.cert.GetCertificate)
	err := i.serve(ctx, i.registry.Server(config), i.registry.Bounded, "nodes-endpoint", i.o.nodesEndpoint, i.replicas.Stop)
	if err == nil {
		go i.replicas.Run(ctx)
	}
	return err
}

// listenForServer opens the port for the API server.
func (i *instance) listenForServer(ctx context.Context) error {
	authorizer, err := trust.NewAuthorizer(trust.AuthorizerConfig{
		Reviews: countedReviews{i.cluster.core.AuthorizationV1().SubjectAccessReviews(), i.counted},
	})
	if err != nil {
		return err
	}
	servers := server.Config{
		Authenticator: i.trusted, Authorizer: authorizer, Fleet: i.fleet, Client: clientOf(i.registry), Namespace: i.o.namespace,
		Ready: i.ready.check, Log: i.log.WithName("request"), Metrics: i.counted, Version: version,
	}
	if i.archive != nil {
		servers.Archive = i.archive
	}
	answers, err := server.New(servers)
	if err != nil {
		return err
	}
	s := answers.HTTP()
	s.TLSConfig = i.trusted.TLSConfig(i.cert.GetCertificate)
	return i.serve(ctx, s, server.Bounded, "api-endpoint", i.o.apiEndpoint, answers.Stop)
}

// serve opens a port, whose connections are bounded. When the gateway stops, begin is called first; requests that are still
// running a while later are cut off.
func (i *instance) serve(
	ctx context.Context, s *http.Server, bounded func(net.Listener) net.Listener, flag, endpoint string, begin func(),
) error {
	l, err := listen(ctx, endpoint)
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	i.log.Info("listening", "for", flag, "address", l.Addr().String())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.ServeTLS(bounded(l), "", ""); !errors.Is(err, http.ErrServerClosed) {
			i.failed <- fmt.Errorf("--%s: serve: %w", flag, err)
		}
	}()
	i.onStop(func(stopping context.Context) error {
		begin()
		stopping, cancel := context.WithTimeout(stopping, requestsLimit)
		defer cancel()
		if err := s.Shutdown(stopping); err != nil {
			i.log.Info("requests are cut off", "on", flag, logkeys.Cause, err.Error())
			s.Close()
		}
		<-ended
		return nil
	})
	return nil
}
