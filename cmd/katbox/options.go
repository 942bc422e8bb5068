package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/katbox/katbox/cmd/katbox/verbs"
	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/ops"
	"github.com/katbox/katbox/internal/lib/program"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/node/store"
	"github.com/katbox/katbox/internal/node/tracing"
	"github.com/katbox/katbox/internal/node/uplink"
)

const (
	// debugVerbosity is the --v from which everything is logged, as in Kubernetes.
	debugVerbosity = 4
	// mostErasures bounds --erase-parallel. More would only queue at the disk.
	mostErasures = 16
	// longestRecordSync bounds --record-sync. By then the kernel has written by itself what it was given.
	longestRecordSync = 30 * time.Second
	// shortestPrune bounds --pruneinterval. A disk does not fill up in less time.
	shortestPrune = 100 * time.Millisecond
)

// options are the daemon's flags. Nothing else configures it.
type options struct {
	endpoint        string
	adminSocket     string
	otlpEndpoint    string
	gateway         string
	gatewayCA       string
	gatewayToken    string
	outcomes        string
	readRate        string
	registrationDir string
	kubeletPath     string
	driverName      string
	nodeID          string
	workdir         string
	workdirOnNode   string
	kubeletDir      string
	afterLifespan   time.Duration
	succeeded       time.Duration
	maxLifespan     time.Duration
	sizeLimit       string
	inodeLimit      string
	maxSizeLimit    string
	maxInodeLimit   string
	policyFile      string
	releaseGrace    time.Duration
	headroom        float64
	kubeletLine     string
	minLifespan     time.Duration
	pressureOrder   string
	maxPerOwner     string
	pruneInterval   time.Duration
	eraseParallel   int
	tombstones      int
	recordSync      time.Duration
	syncPatience    time.Duration
	orphanGrace     time.Duration
	maxPin          time.Duration
	maxPinned       string
	maxVolumes      int64
	httpEndpoint    string
	logLevel        string
	logFormat       string
	verbosity       int
	keepNoexec      bool
	quota           string
	projectIDs      string
	logs            logsOptions
	archive         archiveOptions
	arrays          arrayOptions
	local           localOptions
	showVersion     bool
}

// flags returns the flags of the command line, which set o.
func (o *options) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("katbox", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard) // main writes the one line on stderr
	flags.StringVar(&o.endpoint, "endpoint", "unix:///csi/csi.sock", "CSI socket that the kubelet calls")
	flags.StringVar(&o.adminSocket, "admin-socket", autoSocket,
		"path of the socket on which root on this node lists and reads retained volumes; "+
			"auto is admin.sock in the directory of --endpoint, none is no such socket")
	flags.StringVar(&o.gateway, "gateway", "",
		"HOST:PORT where gateways take the connections of nodes, several separated by commas; the node connects to each address of HOST; "+
			"empty for no gateway")
	flags.StringVar(&o.gatewayCA, "gateway-ca", "/var/run/katbox-gateway/ca.crt",
		"file with the certificates of the CA that signs the gateway's; it is read for each connection, and may appear later")
	flags.StringVar(&o.gatewayToken, "gateway-token", "/var/run/katbox-gateway/token",
		"file with the projected token of the pod's ServiceAccount for the audience katbox-gateway; it is read for each connection")
	flags.StringVar(&o.outcomes, "outcomes", autoOutcomes,
		"from where the daemon learns how pods end: kubelet (its socket pods-api/pods-api.sock in --kubelet-dir), gateway, off, "+
			"or auto: the kubelet while its socket works, else the gateway if there is one")
	flags.StringVar(&o.readRate, "read-rate", "0",
		"how many bytes of retained files are sent in a second to each reader, a quantity such as 100Mi; 0 for no limit")
	flags.StringVar(&o.registrationDir, "registration-dir", "",
		"the kubelet's directory plugins_registry, where the driver registers itself; empty if a sidecar registers it")
	flags.StringVar(&o.kubeletPath, "kubelet-registration-path", "",
		"path of the CSI socket as the kubelet sees it; empty if it is the one of --endpoint")
	flags.StringVar(&o.driverName, "drivername", api.DriverName, "name of the driver, as in its CSIDriver object")
	flags.StringVar(&o.nodeID, "nodeid", "", "name of this node in the cluster (required)")
	flags.StringVar(&o.workdir, "workdir", "/csi-data-dir", "working directory: data directories and records")
	flags.StringVar(&o.workdirOnNode, "workdir-on-node", "",
		"path of the working directory on the node, for the log; empty if it is that of --workdir")
	flags.StringVar(&o.kubeletDir, "kubelet-dir", "/var/lib/kubelet", "the kubelet's root directory; target paths elsewhere are refused")
	durationVar(flags, &o.afterLifespan, "afterlifespan", 12*time.Hour, "how long a volume is kept after its pod is gone")
	durationVar(flags, &o.succeeded, "lifespan-succeeded", 0,
		"how long the volume of a pod that succeeded is kept instead; 0 is as long as any other")
	durationVar(flags, &o.maxLifespan, "max-lifespan", 0, "longest lifespan that a pod may ask for; 0 is --afterlifespan")
	flags.StringVar(&o.sizeLimit, "size-limit", "0",
		"how many bytes a volume may take whose pod sets no sizeLimit, a quantity such as 10Gi; 0 is --max-size-limit")
	flags.StringVar(&o.inodeLimit, "inode-limit", "0",
		"how many files and directories a volume may have whose pod sets no inodeLimit, a quantity such as 100k; 0 is --max-inode-limit")
	flags.StringVar(&o.maxSizeLimit, "max-size-limit", "0", "largest sizeLimit that a pod may ask for; 0 for any")
	flags.StringVar(&o.maxInodeLimit, "max-inode-limit", "0", "largest inodeLimit that a pod may ask for; 0 for any")
	flags.StringVar(&o.policyFile, "policy-file", "",
		"YAML file with lifespans and limits by namespace; it is read again when it changes; empty for none")
	durationVar(flags, &o.releaseGrace, "release-grace", 10*time.Minute,
		"how long a volume is still kept that a person releases, or whose pod asks for no retention")
	flags.Float64Var(&o.headroom, "headroom", 0.1,
		"share of the file system that should stay free, between 0 and 1; with less, lifespans shrink, and with half of it volumes go at once")
	flags.StringVar(&o.kubeletLine, "kubelet-line", autoLine,
		"free space below which the kubelet evicts pods; retained volumes go before that: "+
			"auto, none or BYTES[,INODES], each a percentage or a quantity")
	durationVar(flags, &o.minLifespan, "min-lifespan", 0,
		"how long a retained volume is kept whatever the pressure is, unless the disk is all but full and nothing else is left")
	flags.StringVar(&o.pressureOrder, "pressure-order", oldestFirst,
		"what goes first when room is needed: oldest, or fair: the oldest volume of the namespace that retains most")
	flags.StringVar(&o.maxPerOwner, "max-per-owner", "",
		"of how many pods of a Job, CronJob, ReplicaSet or StatefulSet retained volumes stay, FIRST,LAST such as 1,5: "+
			"of the first and the last ones, counted apart by how they ended; the volumes of those between go; empty for all")
	durationVar(flags, &o.pruneInterval, "pruneinterval", 5*time.Second, "longest time between two looks at how full the disk is")
	flags.BoolVar(&o.keepNoexec, "keep-noexec", false,
		"if the working directory is on a mount with noexec, let volumes inherit that; "+
			"otherwise pods can execute files in a volume, as in an emptyDir")
	flags.StringVar(&o.quota, "quota", string(quota.Auto),
		"project quotas of the working directory's file system, which limit and count what a volume takes: "+
			"auto uses what the file system does, required refuses a volume whose limit it cannot enforce, off gives new volumes none")
	flags.StringVar(&o.projectIDs, "project-ids", quota.DefaultRange.String(),
		"FIRST+SIZE: project IDs that volumes get; nothing else on the file system may use them")
	flags.IntVar(&o.eraseParallel, "erase-parallel", 2, "how many deleted volumes are erased at the same time; erasing gives way to calls")
	durationVar(flags, &o.recordSync, "record-sync", time.Second,
		"how long after a call was answered its record is written to the disk at the latest, where a power cut that takes it lets no "+
			"data go earlier; a daemon that dies forgets nothing; 0 lets each call wait for the disk")
	durationVar(flags, &o.syncPatience, "record-sync-patience", 30*time.Second,
		"how long calls are answered while the disk takes no records; then they wait for it")
	flags.IntVar(&o.tombstones, "tombstones", 10_000,
		"how many deleted volumes the node remembers, with when and why they went; 0 for none")
	durationVar(flags, &o.orphanGrace, "orphan-grace", 10*time.Minute,
		"how long a pod directory must be absent, or a volume be mounted nowhere, before volumes are retained without an unpublish")
	durationVar(flags, &o.maxPin, "max-pin", 168*time.Hour, "how far from now a pin of a retained volume may end; 0 allows no pins")
	flags.StringVar(&o.maxPinned, "max-pinned", "10%",
		"how much of the file system volumes may take that are pinned or attached, a percentage or a quantity; 0 allows neither")
	flags.Int64Var(&o.maxVolumes, "maxvolumespernode", 0,
		"number of volumes that the node reports as its limit, 0 for no limit; the scheduler does not count inline volumes")
	o.logs.addTo(flags)
	o.archive.addTo(flags)
	o.arrays.addTo(flags)
	o.local.addTo(flags)
	flags.StringVar(&o.httpEndpoint, "http-endpoint", "",
		"address for /healthz, /readyz and /metrics, such as \":8080\"; empty for none of them")
	flags.StringVar(&o.otlpEndpoint, "otlp-endpoint", "",
		"URL of an OpenTelemetry collector (OTLP over gRPC), such as http://collector:4317; empty for no traces")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "json", "json or console")
	flags.IntVar(&o.verbosity, "v", 0, "verbosity, as for the archived Katbox; 4 and above is --log-level debug")
	flags.BoolVar(&o.showVersion, "version", false, "print the version and exit")
	return flags
}

// parse reads the command line and checks each flag on its own.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := o.flags()
	flags.Usage = func() {
		verbs.Usage(stdout)
		fmt.Fprintf(stdout, "\nThe daemon's flags:\n%s", flags.FlagUsages())
	}
	if err := program.Parse(programName, flags, args); err != nil || o.showVersion {
		return o, err
	}
	err := o.check()
	o.kubeletDir = filepath.Clean(o.kubeletDir)
	return o, err
}

// check returns the first flag that is not acceptable, and why.
func (o options) check() error {
	switch {
	case o.nodeID == "":
		return errors.New("--nodeid is missing: give the name of this node in the cluster")
	case !filepath.IsAbs(o.kubeletDir):
		return fmt.Errorf("--kubelet-dir %q is not an absolute path", o.kubeletDir)
	case !filepath.IsAbs(o.workdir):
		return fmt.Errorf("--workdir %q is not an absolute path", o.workdir)
	case slices.Contains(strings.Split(o.workdir, "/"), ".."):
		// Behind a symbolic link the kernel finds another directory than Clean.
		return fmt.Errorf("--workdir %q contains \"..\"", o.workdir)
	case filepath.Clean(o.workdir) == "/":
		return errors.New("--workdir / cannot be used: everything below it would be taken for volumes")
	case below(o.podsDir(), o.workdir), below(o.workdir, o.podsDir()):
		return fmt.Errorf("--workdir %s and the pods directory %s of --kubelet-dir contain one another", o.workdir, o.podsDir())
	case o.workdirOnNode != "" && !filepath.IsAbs(o.workdirOnNode):
		return fmt.Errorf("--workdir-on-node %q is not an absolute path", o.workdirOnNode)
	case o.afterLifespan < 0:
		return fmt.Errorf("--afterlifespan %s is negative", duration.Format(o.afterLifespan))
	case o.succeeded < 0:
		return fmt.Errorf("--lifespan-succeeded %s is negative", duration.Format(o.succeeded))
	case o.succeeded > o.afterLifespan:
		return fmt.Errorf("--lifespan-succeeded %s is longer than --afterlifespan %s",
			duration.Format(o.succeeded), duration.Format(o.afterLifespan))
	case o.maxLifespan != 0 && o.maxLifespan < o.afterLifespan:
		return fmt.Errorf("--max-lifespan %s is shorter than --afterlifespan %s",
			duration.Format(o.maxLifespan), duration.Format(o.afterLifespan))
	case o.releaseGrace <= 0:
		return fmt.Errorf("--release-grace %s must be longer than 0", duration.Format(o.releaseGrace))
	case o.policyFile != "" && !filepath.IsAbs(o.policyFile):
		return fmt.Errorf("--policy-file %q is not an absolute path", o.policyFile)
	case o.minLifespan < 0:
		return fmt.Errorf("--min-lifespan %s is negative", duration.Format(o.minLifespan))
	case o.pressureOrder != oldestFirst && o.pressureOrder != fairOrder:
		return fmt.Errorf("--pressure-order %q is neither %s nor %s", o.pressureOrder, oldestFirst, fairOrder)
	case o.pruneInterval < shortestPrune:
		return fmt.Errorf("--pruneinterval %s is shorter than %s", duration.Format(o.pruneInterval), duration.Format(shortestPrune))
	case o.eraseParallel < 1 || o.eraseParallel > mostErasures:
		return fmt.Errorf("--erase-parallel %d is outside of 1..%d", o.eraseParallel, mostErasures)
	case o.recordSync < 0 || o.recordSync > longestRecordSync:
		return fmt.Errorf("--record-sync %s is outside of 0..%s", duration.Format(o.recordSync), duration.Format(longestRecordSync))
	case o.recordSync > 0 && o.syncPatience < o.recordSync:
		return fmt.Errorf("--record-sync-patience %s is shorter than --record-sync %s",
			duration.Format(o.syncPatience), duration.Format(o.recordSync))
	case o.tombstones < 0 || o.tombstones > store.MostTombstones:
		return fmt.Errorf("--tombstones %d is outside of 0..%d", o.tombstones, store.MostTombstones)
	case o.orphanGrace <= 0:
		return fmt.Errorf("--orphan-grace %s must be longer than 0", duration.Format(o.orphanGrace))
	case o.maxPin < 0:
		return fmt.Errorf("--max-pin %s is negative", duration.Format(o.maxPin))
	case o.gateway != "" && !filepath.IsAbs(o.gatewayCA):
		return fmt.Errorf("--gateway-ca %q is not an absolute path", o.gatewayCA)
	case o.gateway != "" && !filepath.IsAbs(o.gatewayToken):
		return fmt.Errorf("--gateway-token %q is not an absolute path", o.gatewayToken)
	case o.maxVolumes < 0:
		return fmt.Errorf("--maxvolumespernode %d is negative", o.maxVolumes)
	}
	_, notASocket := socket.Path(o.endpoint)
	registers := o.registrationDir != ""
	_, badRate := parseRate(o.readRate)
	_, badPinned := o.pinnedAmount()
	_, badPerOwner := volume.ParsePerOwner(o.maxPerOwner)
	for _, checked := range []struct {
		flag string
		used bool
		err  error
	}{
		{"nodeid", true, edge.CheckNodeID(o.nodeID)},
		{"drivername", true, edge.CheckName(o.driverName)},
		{"headroom", true, lifespan.CheckHeadroom(o.headroom)},
		{"kubelet-line", true, checkLine(o.kubeletLine)},
		{"max-pinned", true, badPinned},
		{"max-per-owner", true, badPerOwner},
		{"size-limit", true, quantity(o.sizeLimit)},
		{"inode-limit", true, quantity(o.inodeLimit)},
		{"max-size-limit", true, quantity(o.maxSizeLimit)},
		{"max-inode-limit", true, quantity(o.maxInodeLimit)},
		{"quota", true, checkQuota(o.quota)},
		{"project-ids", true, checkIDs(o.projectIDs)},
		{"endpoint", true, notASocket},
		{"admin-socket", true, o.checkAdminSocket()},
		{"gateway", o.gateway != "", uplink.CheckTarget(o.gateway)},
		{"outcomes", true, o.checkOutcomes()},
		{"read-rate", true, badRate},
		{"http-endpoint", true, ops.CheckEndpoint(o.httpEndpoint)},
		{"otlp-endpoint", o.otlpEndpoint != "", tracing.CheckEndpoint(o.otlpEndpoint)},
		{"registration-dir", registers, o.registrarConfig().CheckDir()},
		{"kubelet-registration-path", registers, o.registrarConfig().CheckEndpoint()},
	} {
		if checked.used && checked.err != nil {
			return fmt.Errorf("--%s: %w", checked.flag, checked.err)
		}
	}
	return cmp.Or(o.logs.check(), o.archive.check(o.gateway), o.arrays.check(o), o.local.check(o), o.bounds().Check())
}

func checkLine(line string) error {
	if line == autoLine {
		return nil
	}
	if _, err := lifespan.ParseLine(line); err != nil {
		return fmt.Errorf("%q is not auto, none or BYTES[,INODES]: %w", line, err)
	}
	return nil
}

// pinnedAmount reads --max-pinned.
func (o options) pinnedAmount() (lifespan.Amount, error) {
	amount, err := lifespan.ParseAmount(o.maxPinned)
	if err != nil {
		return amount, fmt.Errorf("%q %w", o.maxPinned, err)
	}
	return amount, nil
}

// The values of --pressure-order.
const (
	oldestFirst = "oldest"
	fairOrder   = "fair"
)

// leastRate is the lowest --read-rate: a reader gets so much at once.
const leastRate = 64 << 10

// parseRate reads a --read-rate.
func parseRate(text string) (int64, error) {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a quantity such as 100Mi", text)
	}
	rate := quantity.Value()
	if rate != 0 && rate < leastRate {
		return 0, fmt.Errorf("%q is neither 0 nor at least 64Ki", text)
	}
	return rate, nil
}

// level returns the lowest level that is logged.
func (o options) level() string {
	if o.verbosity >= debugVerbosity {
		return "debug"
	}
	return o.logLevel
}

func (o options) podsDir() string { return kubelet.PodsDir(o.kubeletDir) }

// pathOnNode returns the path at which a person on the node finds the working directory. A
// container sees it at another path, and nothing in there reveals the node's path.
func (o options) pathOnNode() string { return cmp.Or(o.workdirOnNode, o.workdir) }

// registrarConfig is for endpoints that were checked already.
func (o options) registrarConfig() kubelet.RegistrarConfig {
	endpoint, _ := socket.Path(o.endpoint)
	return kubelet.RegistrarConfig{Dir: o.registrationDir, Name: o.driverName, Endpoint: cmp.Or(o.kubeletPath, endpoint)}
}

// below reports whether path is dir or below it.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// durationFlag is a duration in the units that internal/model/duration reads.
type durationFlag time.Duration

func durationVar(flags *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	flags.Var((*durationFlag)(d), name, usage)
}

// Set reads the flag's value.
func (f *durationFlag) Set(text string) error {
	d, err := duration.Parse(text)
	*f = durationFlag(d)
	return err
}

// String returns the value, for the default in --help.
func (f *durationFlag) String() string { return duration.Format(time.Duration(*f)) }

// Type names the value in --help.
func (f *durationFlag) Type() string { return "duration" }
