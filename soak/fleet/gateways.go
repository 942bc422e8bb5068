package main

import (
	"context"
	"errors"
	"strings"
)

// gateways are the replicas of the gateway.
type gateways []*gateway

// addresses are where the nodes find them.
func (all gateways) addresses() string {
	var at []string
	for _, g := range all {
		at = append(at, g.at(g.nodesPort))
	}
	return strings.Join(at, ",")
}

// apiPorts are those for the API server.
func (all gateways) apiPorts() (ports []int) {
	for _, g := range all {
		ports = append(ports, g.apiPort)
	}
	return ports
}

func (all gateways) start() error {
	for _, g := range all {
		if err := g.start(); err != nil {
			return err
		}
	}
	return nil
}

func (all gateways) stop() (err error) {
	for _, g := range all {
		err = errors.Join(err, g.stop())
	}
	return err
}

// ended returns why one has ended that was not asked to; nil if none has.
func (all gateways) ended() error {
	for _, g := range all {
		if g.process == nil {
			continue
		}
		select {
		case err := <-g.ended:
			g.process = nil
			return err
		default:
		}
	}
	return nil
}

// counts are the numbers of all together; connected is that of the replica that knows the fewest nodes.
func (all gateways) counts(ctx context.Context) (sum counts, err error) {
	for i, g := range all {
		c, err := g.counts(ctx)
		if err != nil {
			return counts{}, err
		}
		if i == 0 || c.connected < sum.connected {
			sum.connected = c.connected
		}
		sum.here += c.here
		sum.reviews, sum.read = sum.reviews+c.reviews, sum.read+c.read
	}
	return sum, nil
}

// ready returns why one is not ready.
func (all gateways) ready(ctx context.Context) error {
	for _, g := range all {
		if _, err := g.status(ctx, "/readyz"); err != nil {
			return err
		}
	}
	return nil
}

// memory returns how much memory the largest has, and how much any has had at most, in MiB.
func (all gateways) memory() (now, peak int, err error) {
	for _, g := range all {
		n, p, err := g.memory()
		if err != nil {
			return 0, 0, err
		}
		now, peak = max(now, n), max(peak, p)
	}
	return now, peak, nil
}
