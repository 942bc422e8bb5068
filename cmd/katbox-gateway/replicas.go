package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/link/replicas"
)

// firstLook is how long the port for nodes waits until it is known which other replicas there are: a replica that does not
// know would have all nodes connect to each.
const firstLook = 5 * time.Second

// wanted is how many replicas a node connects to, where there are more; the daemon decides that. ownShare is which part of
// those that will probably come to this one it waits for.
const (
	wanted   = 2
	ownShare = 0.8
)

// replicaTargets returns where the replicas listen for nodes.
func (o options) replicaTargets() []string {
	if o.replicas != "" {
		return strings.Split(o.replicas, ",")
	}
	_, port, _ := net.SplitHostPort(o.nodesEndpoint) // it was checked
	return []string{net.JoinHostPort(o.nodesName(), port)}
}

// nodesName is the name by which nodes find the gateway.
func (o options) nodesName() string { return o.nodesService + "." + o.namespace + ".svc" }

// checkReplicas returns why --replicas cannot be used.
func (o options) checkReplicas() error {
	if o.replicas == "" {
		return nil
	}
	for _, target := range o.replicaTargets() {
		if host, _, err := net.SplitHostPort(target); err != nil || host == "" {
			return fmt.Errorf("%q is not HOST:PORT", target)
		}
	}
	return nil
}

// startReplicas prepares for the other replicas.
func (i *instance) startReplicas() (err error) {
	i.replicas, err = replicas.New(replicas.Config{
		Find: replicas.Resolve(i.o.replicaTargets()), Name: i.o.nodesName(), Certificate: i.cert.GetCertificate, Roots: i.cert.Roots,
		Log: i.log.WithName("replicas"),
	})
	return err
}

// lookForReplicas looks for the other replicas, before nodes come.
func (i *instance) lookForReplicas(ctx context.Context) {
	looking, cancel := context.WithTimeout(ctx, firstLook)
	defer cancel()
	i.replicas.Begin(looking)
}

// countNodes counts the nodes that have a daemon, and those of them that this replica reaches.
func (i *instance) countNodes() (expected, connected int) {
	counts := i.registry.Counts()
	return counts.Expected, counts.Connected + counts.Elsewhere
}

// countHere counts the nodes that are connected to this replica itself, and the replicas that answer it.
func (i *instance) countHere() (nodes, all int) {
	return i.registry.Counts().Connected, i.replicas.Count()
}

// countSettled is countNodes while the replica starts. Where others are there it reaches all nodes at once; without those
// that will come to itself it would not help if another one went, as in an update.
func (i *instance) countSettled() (expected, connected int) {
	counts, all := i.registry.Counts(), i.replicas.Count()
	if all <= wanted {
		return counts.Expected, counts.Connected
	}
	if own := int(ownShare * float64(wanted*counts.Expected) / float64(all)); counts.Connected < own {
		return own, counts.Connected
	}
	return counts.Expected, counts.Connected + counts.Elsewhere
}
