package kubelet

import (
	"maps"
	"slices"
	"sync"
)

// API is the part of the API server that a node sees: which pods are on it and
// which of them are over, and what the kubelet and the attach-detach controller
// tell each other by way of the node's status. It outlives kubelets. The zero
// value is ready, and it may be used by many goroutines.
type API struct {
	mu   sync.Mutex
	pods []*Pod
	// nodeID is the driver's ID of the node (in a cluster: CSINode).
	nodeID string
	// attachRequired says that a volume has to be attached before it is staged
	// (in a cluster: CSIDriver).
	attachRequired bool
	// inUse are the handles that must not be detached (in a cluster: the node's
	// status.volumesInUse).
	inUse map[string]bool
	// attachments are the VolumeAttachments, by handle.
	attachments map[string]*attachment
	// left are the pods of which a kubelet has left a part of the directory for ever, by UID.
	left map[string]bool
}

// Create puts a pod on the node.
func (a *API) Create(p *Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods = append(a.pods, p)
	for _, v := range p.Volumes {
		v.Story.Note("pod created")
	}
}

// Finish says that the pod is over, because its containers have ended or it was
// deleted early: its volumes are no longer desired. To say it again changes
// nothing.
func (a *API) Finish(p *Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finish(p)
}

// finish has its caller's lock.
func (a *API) finish(p *Pod) {
	if closed(p.finished) {
		return
	}
	close(p.finished)
	for _, v := range p.Volumes {
		v.Story.Note("no longer desired")
	}
}

// forget says that the pod is over and that its volumes get no calls any more.
// It reports whether that is new.
func (a *API) forget(p *Pod) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if closed(p.forgotten) || !slices.Contains(a.pods, p) {
		return false
	}
	a.finish(p)
	close(p.forgotten)
	return true
}

// leave notes that a part of the pod's directory stays for ever.
func (a *API) leave(p *Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left == nil {
		a.left = make(map[string]bool)
	}
	a.left[p.Plan.UID] = true
}

// isLeft reports whether a part of a pod's directory stays for ever, and the pod is gone.
func (a *API) isLeft(uid string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left[uid]
}

// adopt puts a pod on the node that is over already: there is nothing left of it
// but directories.
func (a *API) adopt(p *Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods = append(a.pods, p)
	a.finish(p)
}

// Pod returns the pod on the node that was created with that UID, if there is one.
func (a *API) Pod(uid string) (*Pod, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.pods, func(p *Pod) bool { return p.Plan.UID == uid && p.Plan.Name != "" })
	if i < 0 {
		return nil, false
	}
	return a.pods[i], true
}

// remove takes a pod off the node.
func (a *API) remove(p *Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.pods, p); i >= 0 {
		a.pods = slices.Delete(a.pods, i, i+1)
	}
}

// observation is a pod as it was at one time.
type observation struct {
	pod   *Pod
	phase phase
}

// observe returns the pods on the node, in the order of their creation.
func (a *API) observe() []observation {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]observation, len(a.pods))
	for i, p := range a.pods {
		list[i] = observation{pod: p, phase: p.phase()}
	}
	return list
}

// register notes the driver's ID of the node.
func (a *API) register(nodeID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodeID = nodeID
}

// noteUnregistered adds to the stories of those who wait for it that the driver
// is not registered.
func (a *API) noteUnregistered(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.pods {
		for _, v := range p.Volumes {
			v.Story.Note("the driver is not registered: %v", why)
		}
	}
}

// registered is the driver's ID of the node, empty until a kubelet knows it.
func (a *API) registered() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodeID
}

// reportInUse notes which volumes the kubelet uses.
func (a *API) reportInUse(handles map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !maps.Equal(a.inUse, handles) {
		a.inUse = handles
	}
}
