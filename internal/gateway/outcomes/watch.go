package outcomes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
)

const (
	// selector selects the pods that have ended, and those whose node is lost.
	selector = "status.phase!=Running,status.phase!=Pending"
	// page is how many pods of a list are decoded at once: some 1 MiB, and 75 MiB where each is as large as
	// a user can make it.
	page = 50
	// pageLimit bounds the time for a page, watchLimit is the shortest that a watch lasts; the longest is
	// twice that. A watch that the API server does not end is given up watchGrace later.
	pageLimit  = time.Minute
	watchLimit = 5 * time.Minute
	watchGrace = time.Minute
)

// usualWaits are those between tries to watch; tests shorten them.
var usualWaits = retry.Backoff{First: time.Second, Longest: 30 * time.Second, Jitter: 0.5}

// Run watches until ctx ends.
func (o *Outcomes) Run(ctx context.Context) {
	go o.forgetOld(ctx)
	o.Metrics.OutcomeSource(false)
	version, reported := "", ""
	for failures := 0; ctx.Err() == nil; {
		var err error
		if version == "" {
			version, err = o.list(ctx)
		}
		if err == nil {
			failures, reported = 0, ""
			o.Metrics.OutcomeSource(true)
			version, err = o.watch(ctx, version)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			version = ""
		}
		o.Metrics.OutcomeSource(false)
		failures++
		wait := o.waits.After(failures)
		if why := err.Error(); why != reported {
			reported = why
			o.Log.Info("the pods of the cluster cannot be watched, trying again until it works; how pods end meanwhile may stay unknown",
				logkeys.Cause, why, logkeys.Interval, duration.Format(wait.Round(time.Second)))
		}
		_ = retry.Pause(ctx, wait)
	}
}

// list lists all pods that have ended, page by page, and returns the version from which to watch.
func (o *Outcomes) list(ctx context.Context) (version string, err error) {
	options := meta.ListOptions{FieldSelector: selector, Limit: page}
	for {
		next, version, err := o.listPage(ctx, options)
		if err != nil {
			return "", fmt.Errorf("list the pods that have ended: %w", err)
		}
		if next == "" {
			return version, nil
		}
		options.Continue = next
	}
}

func (o *Outcomes) listPage(ctx context.Context, options meta.ListOptions) (next, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	list, err := o.Pods.Pods(meta.NamespaceAll).List(ctx, options)
	if err != nil {
		return "", "", err
	}
	for i := range list.Items {
		o.see(&list.Items[i], false)
	}
	return list.Continue, list.ResourceVersion, nil
}

// watch watches once, and returns the version from which to go on.
func (o *Outcomes) watch(ctx context.Context, version string) (string, error) {
	limit := watchLimit + rand.N(watchLimit)
	seconds := int64(limit / time.Second)
	ctx, cancel := context.WithTimeout(ctx, limit+watchGrace)
	defer cancel()
	events, err := o.Pods.Pods(meta.NamespaceAll).Watch(ctx, meta.ListOptions{
		FieldSelector: selector, ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return version, fmt.Errorf("watch the pods that end: %w", err)
	}
	defer events.Stop()
	defer context.AfterFunc(ctx, events.Stop)()
	began := time.Now()
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return version, fmt.Errorf("watch the pods that end: %w", apierrors.FromObject(event.Object))
		}
		pod, ok := event.Object.(*core.Pod)
		if !ok {
			return version, fmt.Errorf("watch the pods that end: got a %T", event.Object)
		}
		version = pod.ResourceVersion
		if event.Type != watch.Bookmark {
			o.see(pod, event.Type == watch.Deleted)
		}
	}
	if time.Since(began) < o.waits.First {
		return version, errors.New("watch the pods that end: the API server ends the watch at once")
	}
	return version, nil
}

// see takes note of a pod.
func (o *Outcomes) see(pod *core.Pod, deleted bool) {
	if how, ok := ofPod(pod); ok && o.add(pod.Spec.NodeName, how) && o.Ended != nil {
		o.Ended(pod, deleted)
	}
}
