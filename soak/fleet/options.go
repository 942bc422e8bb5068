package main

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/katbox/katbox/soak/internal/launch"
)

// mostReplicas bounds the replicas.
const mostReplicas = 9

// defaultActs are all but restart-one, which is a part of restart.
const defaultActs = "lists,search,silence,loss,restart"

// options say what to play.
type options struct {
	kubeconfig string
	gateway    string
	address    string
	nodes      int
	namespaces int
	volumes    int
	silent     int
	lists      int
	restarts   int
	replicas   int
	memory     int
	goMemory   string
	parallel   int
	acts       []string
	keep       bool
	verbose    bool
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := launch.Flags("fleet")
	flags.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the API server, as one who may do everything")
	flags.StringVar(&o.gateway, "gateway", "bin/katbox-gateway", "the gateway's program")
	flags.StringVar(&o.address, "address", "",
		"address of this machine that the API server reaches; empty for the first that is not a loopback")
	flags.IntVar(&o.nodes, "nodes", 5000, "number of nodes")
	flags.IntVar(&o.namespaces, "namespaces", 50, "number of namespaces; each node has volumes of all")
	flags.IntVar(&o.volumes, "volumes", 100, "number of volumes of a node")
	flags.IntVar(&o.silent, "silent", 3, "number of nodes that are silent for a while")
	flags.IntVar(&o.lists, "lists", 10, "how often each list is made")
	flags.IntVar(&o.restarts, "restarts", 1, "how often each replica is started anew, one after the other")
	flags.IntVar(&o.replicas, "replicas", 1, "number of replicas of the gateway; of several one is killed")
	flags.IntVar(&o.memory, "memory", 400, "how many MiB a replica may have")
	flags.StringVar(&o.goMemory, "gomemlimit", "336MiB", "GOMEMLIMIT of a replica, as its Deployment has for so many nodes")
	flags.IntVar(&o.parallel, "parallel", 16, "how many objects are made at the same time")
	acts := flags.String("acts", defaultActs, "what is played once all nodes are connected, in that order; there is restart-one, too: "+
		"one replica is started anew")
	flags.BoolVar(&o.keep, "keep", false, "leave the objects in the cluster, for the next run with the same nodes")
	flags.BoolVar(&o.verbose, "verbose", false, "show the logs of the gateway and of the nodes")
	if err := launch.Parse(flags, args); err != nil {
		return o, err
	}
	o.acts = strings.Split(*acts, ",")
	unknown := slices.IndexFunc(o.acts, func(name string) bool { return (&story{}).act(name) == nil })
	switch {
	case unknown >= 0:
		return o, fmt.Errorf("%w: --acts: there is no act %q", launch.ErrUsage, o.acts[unknown])
	case o.kubeconfig == "":
		return o, fmt.Errorf("%w: there is no cluster: set KUBECONFIG, or give --kubeconfig", launch.ErrUsage)
	case o.nodes < 1 || o.nodes > 20_000, o.namespaces < 1 || o.namespaces > 1000, o.volumes < o.namespaces, o.lists < 1, o.restarts < 0,
		o.parallel < 1, o.memory < 1, o.replicas < 1 || o.replicas > mostReplicas, o.silent < 0 || o.silent >= o.nodes:
		return o, fmt.Errorf("%w: a number is out of range, or a node has fewer volumes than there are namespaces", launch.ErrUsage)
	}
	var err error
	if o.address == "" {
		o.address, err = ownAddress()
	}
	return o, err
}

// ownAddress returns an address of this machine that is not a loopback: an endpoint of a Service may
// not be one.
func ownAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", fmt.Errorf("%w: this machine has no address but loopbacks; give --address", launch.ErrUsage)
}
