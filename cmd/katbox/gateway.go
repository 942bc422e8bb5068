package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/uplink"
)

// connect connects to the gateway, if there is one. It does not wait for that: pods need it for
// nothing.
func (i *instance) connect(context.Context) error {
	if i.o.gateway == "" {
		return nil
	}
	handler, err := i.newHandler(true)
	if err != nil {
		return err
	}
	config := uplink.Config{
		Gateway: i.o.gateway, CAFile: i.o.gatewayCA, TokenFile: i.o.gatewayToken, Node: i.o.nodeID, Version: version, Driver: i.o.driverName,
		Handler: handler, Volumes: i.volumes(), Log: i.log, Metrics: i.counted,
	}
	if i.o.fromGateway() {
		config.Outcomes, config.Ends = i.endings.Load(), i.o.logs.on()
		i.counted.GatewayTellsOutcomes(gatewayOutcomes)
	}
	stopArchive, err := i.startArchive(&config)
	if err != nil {
		return err
	}
	u, err := uplink.Start(config)
	if err != nil {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		return errors.Join(fmt.Errorf("--gateway: %w", err), stopArchive(over))
	}
	i.uplink.Store(u)
	i.onStop(func(context.Context) error {
		i.stopPart("disconnected from the gateway", u.Stop)
		return nil
	})
	i.onStop(stopArchive) // before: the gateway signs what is still archived
	return nil
}

// reportGateway writes how it stands with each replica of the gateway.
func (i *instance) reportGateway(_ context.Context, w io.Writer) error {
	u := i.uplink.Load()
	if u == nil {
		_, err := fmt.Fprintln(w, "no --gateway is given")
		return err
	}
	reportStates(w, u.States())
	return nil
}

// reportStates writes how it stands with each address.
func reportStates(w io.Writer, all []uplink.State) {
	for _, s := range all {
		fmt.Fprintf(w, "%s %s ", s.Target, s.Address)
		if !s.Since.IsZero() {
			fmt.Fprintf(w, "connected since %s ", duration.When(s.Since))
		}
		if s.Err != nil {
			fmt.Fprint(w, volume.OneLine(s.Err))
		}
		fmt.Fprintln(w)
	}
}
