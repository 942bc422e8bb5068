package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// patience is how long all pools may take at most: then it is no measurement.
const patience = 10 * time.Minute

// tell plays the story.
func tell(ctx context.Context, o options, out io.Writer) error {
	k, err := startKubernetes(o)
	if err != nil {
		return err
	}
	defer k.close()
	a, err := startArrays(ctx, o)
	if err != nil {
		return err
	}
	defer a.stop()
	fmt.Fprintf(out, "%d arrays with %d volumes each, all of them in PoolVolumes; latency %s\n", o.arrays, o.volumes, o.latency)
	if err := k.stage(ctx, a); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "poolscale")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	c, err := startController(ctx, o, dir, k.kubeconfig())
	if err != nil {
		return err
	}
	defer c.stop()

	var broken []error
	check := func(what string, value, most float64, unit string) {
		verdict := "ok"
		if value > most {
			verdict = "TOO MUCH"
			broken = append(broken, fmt.Errorf("%s: %.2f %s, more than %.2f", what, value, unit, most))
		}
		fmt.Fprintf(out, "%-40s %10.2f %-9s at most %7.2f  %s\n", what, value, unit, most, verdict)
	}
	if err := k.ready(ctx, c, o.arrays); err != nil {
		return err
	}
	check("start to all Ready", time.Since(began).Seconds(), o.readyWithin.Seconds(), "s")
	start, err := c.usage()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-40s %10.2f s of CPU\n", "the start cost", start.CPU.Seconds())

	percent, asked, err := healthChecks(ctx, o, c, a)
	if err != nil {
		return err
	}
	check("health checks", percent, o.mostCPU, "% of a core")
	fmt.Fprintf(out, "%-40s %10d requests in %s\n", "they were", asked, o.window)
	idle, err := c.usage()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-40s %10.1f MiB\n", "memory afterwards (RssAnon)", float64(idle.Anonymous)/(1<<20))

	if o.claims > 0 {
		if err := claims(ctx, o, k, a, c, out); err != nil {
			broken = append(broken, err)
		}
	}
	check("the most memory (RssAnon)", float64(c.most.Load())/(1<<20), o.mostMiB, "MiB")
	return errors.Join(broken...)
}

// stage makes the class and the pools.
func (k *kubernetes) stage(ctx context.Context, a *arrays) error {
	err := errors.Join(
		k.make(ctx, "/api/v1/namespaces/katbox/secrets",
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"array","namespace":"katbox"},"data":{"token":"dG9rZW4="}}`),
		k.make(ctx, group+"/poolclasses", `{"apiVersion":"pools.katbox.io/v1alpha1","kind":"PoolClass","metadata":{"name":"fast"},`+
			`"spec":{"default":true,"allocator":"Weighted","protocol":"nfs"}}`),
	)
	for n, url := range a.urls {
		err = errors.Join(err, k.make(ctx, group+"/pools", fmt.Sprintf(`{"apiVersion":"pools.katbox.io/v1alpha1","kind":"Pool",`+
			`"metadata":{"name":%q},"spec":{"className":"fast","overcommit":"0","vpsa":{"endpoint":%q,"credentialsSecretRef":{"name":"array"}}}}`,
			poolName(n), url)))
	}
	return err
}

// ready waits until all pools are Ready.
func (k *kubernetes) ready(ctx context.Context, c *controller, pools int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var list struct {
			Items []struct{ Status struct{ State string } }
		}
		if err := request(ctx, http.MethodGet, k.front.URL+group+"/pools", "", &list); err != nil {
			return err
		}
		states := map[string]int{}
		for _, pool := range list.Items {
			states[pool.Status.State]++
		}
		if states["Ready"] == pools {
			return nil
		}
		if err := c.pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("the pools are %v: %w", states, err)
		}
	}
}

// settling is how long the start may have after-effects.
const settling = 10 * time.Second

// healthChecks measures the controller at rest, in percent of a core, and how often arrays were asked.
func healthChecks(ctx context.Context, o options, c *controller, a *arrays) (percent float64, asked int, err error) {
	if err := c.pause(ctx, settling); err != nil {
		return 0, 0, err
	}
	if _, err := a.asked(ctx); err != nil {
		return 0, 0, err
	}
	before, err := c.usage()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := c.pause(ctx, o.window); err != nil {
		return 0, 0, err
	}
	after, err := c.usage()
	if err != nil {
		return 0, 0, err
	}
	percent = (after.CPU - before.CPU).Seconds() / time.Since(began).Seconds() * 100
	asked, err = a.asked(ctx)
	return percent, asked, err
}
