package nodehold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/link/hub"
)

const (
	// callLimit bounds one request, pageSize how many Nodes one of a list returns.
	callLimit = 10 * time.Second
	pageSize  = 500
	// mostTries is how often a Node is read anew because another client changed it in between.
	mostTries = 4
)

// settle reads a Node, decides, and writes what differs. A Node that is gone is forgotten.
func (h *Holder) settle(ctx context.Context, name string, w want) error {
	return h.change(ctx, name, func(m mark) mark { return decide(m, w, time.Now()) }, func(before, after mark) {
		switch log := h.Log.WithValues(logkeys.Node, name, "volumes", w.volumes); {
		case !before.held() && after.held():
			h.Metrics.NodeHold(gatewaymetrics.Began)
			log.V(1).Info("autoscalers keep a node now, because volumes on it wait to be archived")
		case before.held() && !after.held() && w.volumes > 0:
			h.Metrics.NodeHold(gatewaymetrics.Ended)
			log.Info("a node is not held any longer, although volumes on it wait to be archived; if an autoscaler removes it they are lost")
		case before.held() && !after.held():
			h.Metrics.NodeHold(gatewaymetrics.Ended)
			log.V(1).Info("a node is not held any longer")
		}
	})
}

// change changes the mark of a Node, and the annotations that go with it. wrote may be nil; it is called after a write.
func (h *Holder) change(ctx context.Context, name string, to func(mark) mark, wrote func(before, after mark)) error {
	for try := 1; ; try++ {
		node, err := h.get(ctx, name)
		if apierrors.IsNotFound(err) {
			delete(h.marks, name)
			return nil
		}
		if err != nil {
			return err
		}
		before := h.read(node)
		after, patch := patchOf(node, before, to(before))
		if patch == nil {
			h.marks[name] = after
			return nil
		}
		switch err := h.patch(ctx, name, patch); {
		case err == nil:
			h.marks[name] = after
			if wrote != nil {
				wrote(before, after)
			}
			return nil
		case apierrors.IsNotFound(err):
			delete(h.marks, name)
			return nil
		case !apierrors.IsConflict(err) || try == mostTries:
			return fmt.Errorf("annotate node %s: %w", name, err)
		}
	}
}

// read returns the mark of a Node. One that cannot be read says nothing: what was set with it stays.
func (h *Holder) read(node *meta.PartialObjectMetadata) mark {
	m, err := parse(node.Annotations[Marker])
	if err != nil {
		h.Log.Info("an annotation of a node is replaced; what was set with it stays on the node",
			logkeys.Node, node.Name, logkeys.Cause, err.Error())
	}
	return m
}

// patchOf returns the JSON merge patch that makes a Node's mark the next one; nil if there is nothing to change. It returns
// the mark with the annotations that are set by it.
func patchOf(node *meta.PartialObjectMetadata, before, next mark) (mark, []byte) {
	annotations := map[string]any{}
	if !before.held() && next.held() {
		next.set = nil
		for _, key := range Holding() {
			if _, there := node.Annotations[key]; !there {
				next.set = append(next.set, key)
				annotations[key] = Set
			}
		}
	}
	for _, key := range before.set {
		if !slices.Contains(next.set, key) && node.Annotations[key] == Set {
			annotations[key] = nil
		}
	}
	was, marked := node.Annotations[Marker]
	switch text := next.String(); {
	case next.empty() && marked:
		annotations[Marker] = nil
	case !next.empty() && text != was:
		annotations[Marker] = text
	}
	if len(annotations) == 0 {
		return next, nil
	}
	// With the version that was read, so that what another replica or an administrator has written since is seen first.
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{ // of strings
		"uid": node.UID, "resourceVersion": node.ResourceVersion, "annotations": annotations,
	}})
	return next, patch
}

// list notes the marks of all Nodes.
func (h *Holder) list(ctx context.Context) error {
	marks := map[string]mark{}
	err := h.each(ctx, func(node *meta.PartialObjectMetadata) error {
		if _, marked := node.Annotations[Marker]; marked {
			m, _ := parse(node.Annotations[Marker]) // change says why one cannot be read
			if m.empty() {
				// It says nothing. The next look finds it too old, and removes it.
				m.past = []span{{}}
			}
			marks[node.Name] = m
		}
		return nil
	})
	if err != nil {
		return err
	}
	h.marks = marks
	return nil
}

// each calls for each Node of the cluster.
func (h *Holder) each(ctx context.Context, do func(*meta.PartialObjectMetadata) error) error {
	for options := (meta.ListOptions{Limit: pageSize}); ; {
		if err := h.calls.Wait(ctx); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, callLimit)
		page, err := h.Nodes.List(limited, options)
		cancel()
		if err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

func (h *Holder) get(ctx context.Context, name string) (*meta.PartialObjectMetadata, error) {
	if err := h.calls.Wait(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	node, err := h.Nodes.Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read node %s: %w", name, err)
	}
	return node, nil
}

func (h *Holder) patch(ctx context.Context, name string, patch []byte) error {
	if err := h.calls.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := h.Nodes.Patch(ctx, name, types.MergePatchType, patch, meta.PatchOptions{})
	return err
}

// Release ends all holds of the cluster and removes their marks. No replica may hold nodes meanwhile. It returns how many
// Nodes had a mark.
func Release(ctx context.Context, c Config) (released int, err error) {
	c.Waiting = func() []hub.Waiting { return nil }
	h, err := New(c)
	if err != nil {
		return 0, err
	}
	var failed []error
	err = h.each(ctx, func(node *meta.PartialObjectMetadata) error {
		if _, marked := node.Annotations[Marker]; !marked {
			return nil
		}
		released++
		failed = append(failed, h.change(ctx, node.Name, func(mark) mark { return mark{} }, nil))
		return nil
	})
	return released, errors.Join(append(failed, err)...)
}
