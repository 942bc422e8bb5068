package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/katbox/katbox/internal/model/outcome"
	"github.com/katbox/katbox/internal/node/intake"
	"github.com/katbox/katbox/internal/node/podsapi"
)

// Where the daemon learns how pods end.
const (
	// autoOutcomes: from the kubelet while its socket works, else from the gateway if there is one.
	autoOutcomes    = "auto"
	kubeletOutcomes = "kubelet"
	gatewayOutcomes = "gateway"
	noOutcomes      = "off"
)

func (o options) checkOutcomes() error {
	modes := []string{autoOutcomes, kubeletOutcomes, gatewayOutcomes, noOutcomes}
	switch {
	case !slices.Contains(modes, o.outcomes):
		return fmt.Errorf("%q is none of %s", o.outcomes, strings.Join(modes, ", "))
	case o.outcomes == gatewayOutcomes && o.gateway == "":
		return fmt.Errorf("%s needs --gateway", gatewayOutcomes)
	}
	return nil
}

// endings are the sources of how pods end. A nil one stands for none.
type endings struct {
	*intake.Intake
	// kubeletUp: the kubelet tells all, so that no other source is believed.
	kubeletUp atomic.Bool
	kubelet   *podsapi.Client
}

// Take takes in what a gateway says.
func (e *endings) Take(ctx context.Context, ending outcome.Ending) (taken bool, err error) {
	if e.kubeletUp.Load() {
		return false, nil
	}
	return true, e.Intake.Take(ctx, ending)
}

// startOutcomes begins to learn how pods end. It waits for no source.
func (i *instance) startOutcomes(context.Context) error {
	if i.o.outcomes == noOutcomes {
		return nil
	}
	log := i.log.WithName("outcomes")
	taken, err := intake.Start(intake.Config{Node: i.node, Log: log})
	if err != nil {
		return err
	}
	e := &endings{Intake: taken}
	i.onStop(func(context.Context) error {
		i.stopPart("stopped noting how pods ended", taken.Stop)
		return nil
	})
	if i.o.outcomes != gatewayOutcomes {
		if i.o.outcomes == kubeletOutcomes { // with auto, a kubelet without the socket is not a fault
			i.counted.OutcomeSource(kubeletOutcomes, false)
		}
		e.kubelet, err = podsapi.Start(podsapi.Config{
			Socket: podsapi.Socket(i.o.kubeletDir), Driver: i.o.driverName, Log: log, Ends: i.o.logs.on(),
			Ended: func(ctx context.Context, ending outcome.Ending) {
				_ = taken.Take(ctx, ending) // the watch or the daemon ends
			},
			Up: func(up bool) {
				e.kubeletUp.Store(up)
				i.counted.OutcomeSource(kubeletOutcomes, up)
			},
		})
		if err != nil {
			return err
		}
		i.onStop(func(context.Context) error { e.kubelet.Stop(); return nil })
	}
	i.endings.Store(e)
	return nil
}

// fromGateway reports whether a gateway may say how pods end.
func (o options) fromGateway() bool {
	return o.gateway != "" && (o.outcomes == autoOutcomes || o.outcomes == gatewayOutcomes)
}

// reportOutcomes writes from where the daemon learns how pods end.
func (i *instance) reportOutcomes(_ context.Context, w io.Writer) error {
	e := i.endings.Load()
	switch {
	case e == nil:
		fmt.Fprintln(w, "off")
	case e.kubeletUp.Load():
		fmt.Fprintln(w, "the kubelet's socket")
	case i.o.fromGateway():
		fmt.Fprintln(w, "the gateway")
	default:
		fmt.Fprintln(w, "nothing: the kubelet's socket does not answer")
	}
	return nil
}
