//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// testInUse: a deleted claim is no longer in use when its finalizer kubernetes.io/pvc-protection is gone
// and no VolumeAttachment names its volume. Until then the volume stays on the array. The order is the
// same for all kinds of volumes.
func (p *poolsCluster) testInUse() {
	for _, c := range []claim{
		{name: "rwo"}, {name: "rwx", access: "ReadWriteMany"}, {name: "block", mode: "Block"},
	} {
		p.apply(c.String(), podWith(c.name, c))
		volume := p.bound(c.name)
		p.eventually(c.name+" is published", func() error {
			if !p.stub.has("publish", volume) {
				return errors.New("the kubelet has not called")
			}
			return nil
		})
		p.kubectl("delete", "pvc", c.name, "--wait=false")
		time.Sleep(2 * time.Second) // time to be wrong
		if out := p.kubectl("get", "pvc", c.name, "-o", "jsonpath={.metadata.finalizers}"); !strings.Contains(out, "pvc-protection") {
			p.t.Errorf("%s: a pod uses the claim, and its finalizers are %s", c.name, out)
		}
		p.kubectl("delete", "pod", c.name, "--wait=false")
		order := p.watchEnd(c.name, volume)
		p.t.Logf("%s: %s", c.name, strings.Join(order, ", "))
		p.wantOrder(c.name, order)
	}
}

// The steps of the end of a deleted claim and its pod.
const (
	unstaged   = "unstaged"
	released   = "claim gone" // its finalizer too: no pod uses it
	detached   = "VolumeAttachment gone"
	cut        = "detached on the array"
	forgotten  = "PersistentVolume gone"
	fromArray  = "deleted on the array"
	recordGone = "PoolVolume gone"
)

// watchEnd looks which steps have come, until all have.
func (p *poolsCluster) watchEnd(claim, volume string) (order []string) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for len(order) < 7 {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: only %v has come", claim, order)
		}
		step := func(name string, come bool) {
			if come && !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
		// What comes first is asked for last, so that a step is never seen before one that it follows.
		var objects struct {
			Items []struct {
				Kind     string
				Metadata struct{ Name string }
				Spec     struct {
					Source struct{ PersistentVolumeName string }
				}
			}
		}
		out := p.kubectl("get", "poolvolumes,pv,volumeattachments,pvc", "-o", "json")
		if err := json.Unmarshal([]byte(out), &objects); err != nil {
			p.t.Fatal(err)
		}
		there := map[string]bool{}
		for _, o := range objects.Items {
			if o.Metadata.Name == volume || o.Metadata.Name == claim || o.Spec.Source.PersistentVolumeName == volume {
				there[o.Kind] = true
			}
		}
		onArray := false
		for _, v := range p.onArray("volumes") {
			onArray = onArray || v["display_name"] == volume
		}
		attached := onArray && p.attachedTo(volume) != ""
		step(unstaged, p.stub.has("unstage", volume))
		step(released, !there["PersistentVolumeClaim"])
		step(cut, !attached)
		step(detached, !there["VolumeAttachment"])
		step(fromArray, !onArray)
		step(recordGone, !there["PoolVolume"])
		step(forgotten, !there["PersistentVolume"])
		time.Sleep(20 * time.Millisecond)
	}
	return order
}

// wantOrder: the node lets go first, then the array; the volume goes only when the claim is gone and nothing
// is attached. When the claim itself goes depends on the pod alone.
func (p *poolsCluster) wantOrder(claim string, order []string) {
	p.t.Helper()
	at := func(step string) int { return slices.Index(order, step) }
	for _, pair := range [][2]string{
		{unstaged, cut}, {cut, fromArray}, {detached, forgotten}, {released, fromArray}, {fromArray, forgotten},
	} {
		if at(pair[0]) > at(pair[1]) {
			p.t.Errorf("%s: %q came before %q", claim, pair[1], pair[0])
		}
	}
}
