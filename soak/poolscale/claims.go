package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/testbed"
)

// callTimeout is that of the sidecars; again is when they repeat a call at first.
const (
	callTimeout = 3 * time.Minute
	again       = 250 * time.Millisecond
)

// claims makes volumes and deletes them, as many at a time as asked for. Nothing may be left.
func claims(ctx context.Context, o options, k *kubernetes, a *arrays, c *controller, out io.Writer) error {
	before, err := a.count(ctx, "volumes")
	if err != nil {
		return err
	}
	conn, err := testbed.Dial(c.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := csi.NewControllerClient(conn)
	ids := make([]string, o.claims)
	err = o.each(ctx, out, a, "made", func(ctx context.Context, n int) error {
		made, err := client.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: fmt.Sprintf("pvc-99999999-0000-4000-8000-%012d", n), CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
			VolumeCapabilities: []*csi.VolumeCapability{testbed.Mount()},
		})
		ids[n] = made.GetVolume().GetVolumeId()
		return err
	})
	if err != nil {
		return err
	}
	between, err := a.count(ctx, "volumes")
	if err != nil {
		return err
	}
	err = o.each(ctx, out, a, "deleted", func(ctx context.Context, n int) error {
		_, err := client.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: ids[n]})
		return err
	})
	if err != nil {
		return err
	}
	after, err := a.count(ctx, "volumes")
	if err != nil {
		return err
	}
	var left struct{ Items []any }
	if err := request(ctx, http.MethodGet, k.kept.URL()+poolVolumes, "", &left); err != nil {
		return err
	}
	if between != before+o.claims || after != before || len(left.Items) != 0 {
		return fmt.Errorf("the arrays had %d volumes, with %d claims %d, and %d at the end; %d PoolVolumes are left",
			before, o.claims, between, after, len(left.Items))
	}
	fmt.Fprintf(out, "%-40s %10d\n", "volumes and PoolVolumes that are left", 0)
	return nil
}

// each calls for each claim, and repeats what may be repeated, as sidecars do.
func (o options) each(ctx context.Context, out io.Writer, a *arrays, what string, call func(context.Context, int) error) error {
	if _, err := a.asked(ctx); err != nil {
		return err
	}
	began := time.Now()
	next := make(chan int)
	var workers sync.WaitGroup
	failed := make([]error, o.parallel)
	for w := range o.parallel {
		workers.Go(func() {
			for n := range next {
				failed[w] = errors.Join(failed[w], repeat(ctx, func(ctx context.Context) error { return call(ctx, n) }))
			}
		})
	}
	for n := range o.claims {
		next <- n
	}
	close(next)
	workers.Wait()
	took := time.Since(began)
	if err := errors.Join(failed...); err != nil {
		return err
	}
	asked, err := a.asked(ctx)
	fmt.Fprintf(out, "%-40s %10.2f s, %.0f a second, with %.1f requests each\n",
		fmt.Sprintf("%d volumes %s, %d at a time", o.claims, what, o.parallel),
		took.Seconds(), float64(o.claims)/took.Seconds(), float64(asked)/float64(o.claims))
	return err
}

// repeat calls until there is an answer that is final.
func repeat(ctx context.Context, call func(context.Context) error) error {
	for wait := again; ; wait = min(2*wait, 10*time.Second) {
		one, cancel := context.WithTimeout(ctx, callTimeout)
		err := call(one)
		cancel()
		switch status.Code(err) {
		case codes.Aborted, codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
		default:
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, wait)
		<-waiting.Done()
		cancel()
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}
