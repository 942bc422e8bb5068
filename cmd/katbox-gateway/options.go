package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/katbox/katbox/internal/lib/ops"
	"github.com/katbox/katbox/internal/lib/program"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	// The values of --cert-mode.
	builtinCert = "builtin"
	givenCert   = "given"
	// The values of --outcomes.
	watchOutcomes = "watch"
	noOutcomes    = "off"
	// longestDelay bounds --shutdown-delay: the rest of the stop needs its time as well.
	longestDelay = 10 * time.Second
)

// options are the gateway's flags. Nothing else configures it.
type options struct {
	apiEndpoint   string
	nodesEndpoint string
	httpEndpoint  string

	namespace          string
	service            string
	nodesService       string
	replicas           string
	nodeServiceAccount string
	nodeSelector       string
	audience           string

	certMode    string
	certDir     string
	certSecret  string
	caConfigMap string

	outcomes   string
	podEvents  bool
	driverName string

	archive archiveOptions

	holdNodes    bool
	releaseNodes bool

	shutdownDelay time.Duration

	kubeconfig  string
	logLevel    string
	logFormat   string
	showVersion bool
}

// flags returns the flags of the command line, which set o.
func (o *options) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("katbox-gateway", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard) // main writes the one line on stderr
	flags.StringVar(&o.apiEndpoint, "api-endpoint", ":10250", "address that the API server connects to")
	flags.StringVar(&o.nodesEndpoint, "nodes-endpoint", ":9443", "address that the node daemons connect to")
	flags.StringVar(&o.httpEndpoint, "http-endpoint", "",
		"address for /healthz, /readyz and /metrics, such as \":8080\"; empty for none of them")
	flags.StringVar(&o.namespace, "namespace", "", "namespace of the gateway and of the daemons (required)")
	flags.StringVar(&o.service, "service", "katbox-gateway", "Service by which the API server reaches the gateway, for its certificate")
	flags.StringVar(&o.nodesService, "nodes-service", "katbox-gateway-nodes", "Service by which the daemons reach it, for its certificate")
	flags.StringVar(&o.replicas, "replicas", "",
		"HOST:PORT where the replicas listen for the daemons, several separated by commas, to find one another; empty for --nodes-service, "+
			"and the port of --nodes-endpoint")
	flags.StringVar(&o.nodeServiceAccount, "node-service-account", "katbox", "ServiceAccount of the daemons; no other may connect")
	flags.StringVar(&o.nodeSelector, "node-selector", "app.kubernetes.io/name=katbox",
		"labels of the daemons' pods: the nodes of these are expected")
	flags.StringVar(&o.audience, "audience", "katbox-gateway", "audience of the tokens that the daemons show")
	flags.StringVar(&o.certMode, "cert-mode", builtinCert, "builtin: the gateway makes and renews its certificate; given: it is in --cert-dir")
	flags.StringVar(&o.certDir, "cert-dir", "",
		"directory with tls.crt, tls.key and ca.crt, read again when they change; for --cert-mode given")
	flags.StringVar(&o.certSecret, "cert-secret", "katbox-gateway",
		"Secret for what all replicas share: the certificate, if it is builtin, and a key")
	flags.StringVar(&o.caConfigMap, "ca-configmap", "katbox-gateway-ca", "ConfigMap that gets the CA of the certificate, for the daemons")
	flags.StringVar(&o.outcomes, "outcomes", watchOutcomes,
		"watch: it watches the pods of the cluster that end, and tells their nodes how; off: nodes learn that elsewhere, or not at all")
	flags.BoolVar(&o.podEvents, "pod-events", true,
		"write an event on each pod that failed, which says how to see its files; for --outcomes watch")
	flags.StringVar(&o.driverName, "driver-name", api.DriverName, "name of the CSI driver whose volumes these events are about")
	o.archive.define(flags)
	flags.BoolVar(&o.holdNodes, "hold-nodes", false,
		"keep a node from the Cluster Autoscaler and Karpenter while volumes on it wait to be archived: 10 minutes at most after the last "+
			"one was retained, 20 in two hours")
	flags.BoolVar(&o.releaseNodes, "release-nodes", false,
		"remove from all Nodes what --hold-nodes has set, and exit; no gateway may run with --hold-nodes meanwhile")
	flags.DurationVar(&o.shutdownDelay, "shutdown-delay", 3*time.Second,
		"how long it still answers after a signal, while it is not ready: so long the API server may still ask it")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file that says how to reach the API server; empty in a pod")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "json", "json or console")
	flags.BoolVar(&o.showVersion, "version", false, "print the version and exit")
	return flags
}

// parse reads and checks the command line.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := o.flags()
	flags.Usage = func() {
		fmt.Fprintf(stdout, "katbox-gateway shows retained volumes in the Kubernetes API.\n\nFlags:\n%s", flags.FlagUsages())
	}
	if err := program.Parse(programName, flags, args); err != nil || o.showVersion {
		return o, err
	}
	return o, o.check()
}

// check returns the first flag that is not acceptable, and why.
func (o options) check() error {
	for _, required := range []struct{ flag, value, meaning string }{
		{"namespace", o.namespace, "the namespace of the gateway"},
		{"api-endpoint", o.apiEndpoint, "the address for the API server"},
		{"nodes-endpoint", o.nodesEndpoint, "the address for the daemons"},
		{"audience", o.audience, "the audience of the daemons' tokens"},
		{"driver-name", o.driverName, "the name of the CSI driver"},
	} {
		if required.value == "" {
			return fmt.Errorf("--%s is missing: give %s", required.flag, required.meaning)
		}
	}
	for _, checked := range []struct {
		flag string
		err  error
	}{
		{"api-endpoint", ops.CheckEndpoint(o.apiEndpoint)},
		{"nodes-endpoint", ops.CheckEndpoint(o.nodesEndpoint)},
		{"http-endpoint", ops.CheckEndpoint(o.httpEndpoint)},
		{"namespace", checkName(o.namespace, validation.IsDNS1123Label)},
		{"service", checkName(o.service, validation.IsDNS1035Label)},
		{"nodes-service", checkName(o.nodesService, validation.IsDNS1035Label)},
		{"replicas", o.checkReplicas()},
		{"node-service-account", checkName(o.nodeServiceAccount, validation.IsDNS1123Subdomain)},
		{"node-selector", checkSelector(o.nodeSelector)},
		{"cert-secret", checkName(o.certSecret, validation.IsDNS1123Subdomain)},
		{"ca-configmap", checkName(o.caConfigMap, validation.IsDNS1123Subdomain)},
	} {
		if checked.err != nil {
			return fmt.Errorf("--%s: %w", checked.flag, checked.err)
		}
	}
	if err := o.archive.check(); err != nil {
		return err
	}
	switch {
	case o.shutdownDelay < 0 || o.shutdownDelay > longestDelay:
		return fmt.Errorf("--shutdown-delay %s is outside of 0s..%s", o.shutdownDelay, longestDelay)
	case o.holdNodes && o.releaseNodes:
		return errors.New("--release-nodes removes what --hold-nodes sets; give one of them")
	case o.holdNodes && o.archive.bucket == "":
		return errors.New("--hold-nodes is of no use without --archive-bucket: nothing waits to be archived")
	case o.outcomes != watchOutcomes && o.outcomes != noOutcomes:
		return fmt.Errorf("--outcomes %q is neither watch nor off", o.outcomes)
	case !slices.Contains([]string{builtinCert, givenCert}, o.certMode):
		return fmt.Errorf("--cert-mode %q is neither builtin nor given", o.certMode)
	case o.certMode == givenCert && o.certDir == "":
		return errors.New("--cert-dir is missing: --cert-mode given needs the directory with the certificate")
	case o.certMode == builtinCert && o.certDir != "":
		return errors.New("--cert-dir is of no use without --cert-mode given; leave one or the other out")
	}
	return nil
}

func checkName(name string, problems func(string) []string) error {
	if found := problems(name); len(found) > 0 {
		return fmt.Errorf("%q is not a name: %s", name, found[0])
	}
	return nil
}

// checkSelector refuses one that selects everything: a pod that is no daemon makes no node expected.
func checkSelector(text string) error {
	selector, err := labels.Parse(text)
	if err == nil && selector.Empty() {
		err = errors.New("it selects all pods")
	}
	return err
}

// names are the DNS names of the certificate.
func (o options) names() []string {
	return []string{o.service + "." + o.namespace + ".svc", o.nodesName()}
}
