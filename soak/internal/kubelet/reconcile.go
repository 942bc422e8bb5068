package kubelet

// kind says what an action does. It is the operation's name.
type kind string

const (
	unmountVolume kind = "unmount volume"
	abandonVolume kind = "abandon volume" // it is not mounted and never will be
	verifyAttach  kind = "verify attach"
	mountVolume   kind = "mount volume"
	startPod      kind = "start pod" // all its volumes are mounted
	unmountDevice kind = "unmount device"
	detachDevice  kind = "detach device"
	removePod     kind = "remove pod" // its volumes are down, its directories are not
	dropPod       kind = "drop pod"   // it was forgotten
)

// action is something to do because the worlds differ. It has a pod, a volume or
// a device.
type action struct {
	kind   kind
	pod    *Pod
	volume *Volume
	handle string
}

// reconcile compares the worlds and returns what is to be done, in the order in
// which the kubelet goes about it. It changes nothing and knows nothing of
// operations: what runs already, or has to wait, is returned too.
func (a *actual) reconcile(pods []observation) []action {
	actions := a.unmounts(nil, pods)
	actions = a.mounts(actions, pods)
	actions = a.deviceUnmounts(actions, pods)
	return a.removals(actions, pods)
}

// unmounts is about volumes that are not desired.
func (a *actual) unmounts(actions []action, pods []observation) []action {
	for _, p := range pods {
		if p.phase != finished {
			continue
		}
		for _, v := range p.pod.Volumes {
			switch {
			case a.of(v).state != absent:
				actions = append(actions, action{kind: unmountVolume, volume: v})
			case !v.settled():
				actions = append(actions, action{kind: abandonVolume, volume: v})
			}
		}
	}
	return actions
}

// mounts is about volumes that are desired and not certainly mounted.
func (a *actual) mounts(actions []action, pods []observation) []action {
	for _, p := range pods {
		if p.phase != running {
			continue
		}
		missing := 0
		for _, v := range p.pod.Volumes {
			switch {
			case a.of(v).state == mounted:
				continue
			case v.Plan.Persistent && a.devices[v.Plan.ID] == nil:
				actions = append(actions, action{kind: verifyAttach, volume: v})
			default:
				actions = append(actions, action{kind: mountVolume, volume: v})
			}
			missing++
		}
		if missing == 0 {
			actions = append(actions, action{kind: startPod, pod: p.pod})
		}
	}
	return actions
}

// deviceUnmounts is about persistent volumes that no pod uses or desires.
func (a *actual) deviceUnmounts(actions []action, pods []observation) []action {
	if len(a.devices) == 0 {
		return actions
	}
	used := desiredDevices(pods)
	for v := range a.volumes {
		used[v.Plan.ID] = true
	}
	for handle, d := range a.devices {
		switch {
		case used[handle]:
		case d.state != absent:
			actions = append(actions, action{kind: unmountDevice, handle: handle})
		default:
			actions = append(actions, action{kind: detachDevice, handle: handle})
		}
	}
	return actions
}

// removals is about pods of which only directories are left, if anything.
func (a *actual) removals(actions []action, pods []observation) []action {
	for _, p := range pods {
		switch {
		case p.phase == forgotten:
			actions = append(actions, action{kind: dropPod, pod: p.pod})
		case p.phase == finished && a.down(p.pod):
			actions = append(actions, action{kind: removePod, pod: p.pod})
		}
	}
	return actions
}

// down reports whether all volumes of a pod are down, and this was told.
func (a *actual) down(p *Pod) bool {
	for _, v := range p.Volumes {
		if a.of(v).state != absent || !v.settled() {
			return false
		}
	}
	return true
}

// inUse are the handles that must not be detached.
func (a *actual) inUse(pods []observation) map[string]bool {
	used := desiredDevices(pods)
	for handle := range a.devices {
		used[handle] = true
	}
	return used
}

// desiredDevices are the handles that running pods want.
func desiredDevices(pods []observation) map[string]bool {
	desired := make(map[string]bool)
	for _, p := range pods {
		if p.phase != running {
			continue
		}
		for _, v := range p.pod.Volumes {
			if v.Plan.Persistent {
				desired[v.Plan.ID] = true
			}
		}
	}
	return desired
}
