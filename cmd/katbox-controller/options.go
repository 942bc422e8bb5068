package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/ops"
	"github.com/katbox/katbox/internal/lib/program"
	"github.com/katbox/katbox/internal/lib/socket"
)

const (
	// leastInterval bounds --probe-interval and --sync-interval: each is a request to every array.
	leastInterval = time.Second
	// exitTime is how long a replica that has lost its lease still lives at most. Another one may take
	// over --leader-election-lease-duration after the last renewal, and so much before that this one
	// has to have given up.
	exitTime = 2 * time.Second
)

// options are the controller's flags. Nothing else configures it.
type options struct {
	endpoint     string
	driverName   string
	httpEndpoint string
	// For pools on nodes.
	localEndpoint   string
	localDriverName string

	namespace     string
	chapNamespace string
	probeInterval time.Duration
	syncInterval  time.Duration

	nodes nodesOptions

	elect          bool
	lease          string
	leaseNamespace string
	identity       string
	leaseDuration  time.Duration
	renewDeadline  time.Duration
	retryPeriod    time.Duration

	kubeconfig  string
	logLevel    string
	logFormat   string
	showVersion bool
}

// flags returns the flags of the command line, which set o.
func (o *options) flags() *pflag.FlagSet {
	hostname, _ := os.Hostname()
	flags := pflag.NewFlagSet(programName, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard) // main writes the one line on stderr
	flags.StringVar(&o.endpoint, "endpoint", "unix:///csi/csi.sock",
		"Unix socket for the sidecars; the leader alone answers on it, beside others they wait")
	flags.StringVar(&o.driverName, "driver-name", "array.csi.katbox.io", "name of the CSIDriver object")
	flags.StringVar(&o.localEndpoint, "local-endpoint", "",
		"Unix socket for the sidecars of the volumes on nodes' disks; empty where there are none")
	flags.StringVar(&o.localDriverName, "local-driver-name", "local.csi.katbox.io", "name of the CSIDriver object for volumes on nodes' disks")
	flags.StringVar(&o.httpEndpoint, "http-endpoint", "",
		"address for /healthz, /readyz and /metrics, such as \":8080\"; empty for none of them")
	flags.StringVar(&o.namespace, "namespace", "", "namespace of the controller, and of the Secrets that Pools name (required)")
	flags.StringVar(&o.chapNamespace, "chap-namespace", "",
		"namespace for the Secrets with what nodes log in with over iSCSI; nodes may read all Secrets in it (required)")
	flags.DurationVar(&o.probeInterval, "probe-interval", 50*time.Second, "how often each array is asked how it is")
	flags.DurationVar(&o.syncInterval, "sync-interval", 5*time.Minute,
		"how often the volumes and snapshots of each array are compared with the resources")
	o.nodes.addTo(flags)
	flags.BoolVar(&o.elect, "leader-election", true, "serve only while this replica holds the lease")
	flags.StringVar(&o.lease, "leader-election-lease", programName, "name of the Lease")
	flags.StringVar(&o.leaseNamespace, "leader-election-namespace", "", "namespace of the Lease; empty for --namespace")
	flags.StringVar(&o.identity, "leader-election-identity", hostname, "who holds the Lease; it differs between replicas")
	flags.DurationVar(&o.leaseDuration, "leader-election-lease-duration", 15*time.Second,
		"how long others wait since the last renewal before they take over")
	flags.DurationVar(&o.renewDeadline, "leader-election-renew-deadline", 10*time.Second,
		"how long the leader tries to renew before it ends")
	flags.DurationVar(&o.retryPeriod, "leader-election-retry-period", 2*time.Second, "time between two attempts")
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
		fmt.Fprintf(stdout, "katbox-controller makes persistent volumes on remote arrays and on nodes' disks.\n\nFlags:\n%s", flags.FlagUsages())
	}
	if err := program.Parse(programName, flags, args); err != nil || o.showVersion {
		return o, err
	}
	if o.leaseNamespace == "" {
		o.leaseNamespace = o.namespace
	}
	return o, o.check()
}

// check returns the first flag that is not acceptable, and why.
func (o options) check() error {
	for _, required := range []struct{ flag, value, meaning string }{
		{"namespace", o.namespace, "the namespace of the controller"},
		{"chap-namespace", o.chapNamespace, "a namespace whose Secrets nodes may read"},
		{"leader-election-identity", o.identity, "a name that no other replica has"},
	} {
		if required.value == "" {
			return fmt.Errorf("--%s is missing: give %s", required.flag, required.meaning)
		}
	}
	if o.chapNamespace == o.namespace {
		return errors.New("--chap-namespace is the same as --namespace: nodes may read all Secrets in it, and so the arrays' tokens")
	}
	for _, checked := range []struct {
		flag string
		err  error
	}{
		{"endpoint", checkSocket(o.endpoint)},
		{"driver-name", edge.CheckName(o.driverName)},
		{"local-endpoint", checkLocal(o.localEndpoint, o.endpoint)},
		{"local-driver-name", checkLocalName(o.localDriverName, o.driverName)},
		{"http-endpoint", ops.CheckEndpoint(o.httpEndpoint)},
		{"namespace", checkName(o.namespace, validation.IsDNS1123Label)},
		{"chap-namespace", checkName(o.chapNamespace, validation.IsDNS1123Label)},
		{"leader-election-lease", checkName(o.lease, validation.IsDNS1123Subdomain)},
		{"leader-election-namespace", checkName(o.leaseNamespace, validation.IsDNS1123Label)},
		{"probe-interval", checkInterval(o.probeInterval)},
		{"sync-interval", checkInterval(o.syncInterval)},
	} {
		if checked.err != nil {
			return fmt.Errorf("--%s: %w", checked.flag, checked.err)
		}
	}
	if err := o.nodes.check(); err != nil {
		return err
	}
	switch {
	case o.retryPeriod <= 0:
		return fmt.Errorf("--leader-election-retry-period %s is not positive", o.retryPeriod)
	case o.renewDeadline < 2*o.retryPeriod:
		return fmt.Errorf("--leader-election-renew-deadline %s is less than two times the retry period of %s", o.renewDeadline, o.retryPeriod)
	case o.leaseDuration < o.renewDeadline+exitTime:
		return fmt.Errorf("--leader-election-lease-duration %s is less than the renew deadline of %s and %s to end in: two replicas would serve",
			o.leaseDuration, o.renewDeadline, exitTime)
	}
	return nil
}

func checkSocket(endpoint string) error {
	path, err := socket.Path(endpoint)
	if err != nil {
		return err
	}
	return socket.CheckPath(path)
}

// checkLocal refuses a socket that is not acceptable, or is the other driver's.
func checkLocal(endpoint, other string) error {
	switch endpoint {
	case "":
		return nil
	case other:
		return errors.New("is the same as --endpoint: each driver has a socket of its own")
	}
	return checkSocket(endpoint)
}

func checkLocalName(name, other string) error {
	if name == other {
		return errors.New("is the same as --driver-name: volumes on nodes' disks have a driver of their own")
	}
	return edge.CheckName(name)
}

func checkInterval(d time.Duration) error {
	if d < leastInterval {
		return fmt.Errorf("%s is shorter than %s", d, leastInterval)
	}
	return nil
}

func checkName(name string, problems func(string) []string) error {
	if found := problems(name); len(found) > 0 {
		return fmt.Errorf("%q is not a name: %s", name, found[0])
	}
	return nil
}
