package kubelet

// mountState is what the kubelet knows of a mount.
type mountState int

const (
	// absent: nothing is mounted.
	absent mountState = iota
	// uncertain: something may be mounted.
	uncertain
	// mounted: the driver said so.
	mounted
)

// verdict is what the kubelet makes of an attempt to mount.
type verdict int

const (
	// untouched: the attempt did not get as far as to change anything.
	untouched verdict = iota
	succeeded
	// failed: the driver said for good that it did not work.
	failed
	// unknown: the driver may have done it, or may do it yet.
	unknown
)

// actual is the actual state of the world: what is or may be mounted. What is
// absent from it is not mounted, as far as the kubelet knows.
type actual struct {
	volumes map[*Volume]*mount
	// devices are the persistent volumes, by handle.
	devices map[string]*device
}

// mount is a volume in a pod, or a staged volume.
type mount struct {
	state mountState
	// reconstructed says that all that is known of it is from directories, and
	// that this kubelet has not mounted it yet.
	reconstructed bool
}

// device is a persistent volume on the node, which pods share. It is there as
// soon as it is attached.
type device struct {
	mount
	// volume is that of the pod that used it last.
	volume *Volume
}

func newActual() *actual {
	return &actual{volumes: make(map[*Volume]*mount), devices: make(map[string]*device)}
}

// verdictOf is the kubelet's view of the error of a stage or publish.
func verdictOf(err error) verdict {
	switch {
	case err == nil:
		return succeeded
	case final(err):
		return failed
	default:
		return unknown
	}
}

// learn is what is known of a mount after another attempt
// (kubernetes operation_generator.go, markVolumeErrorState).
func (m mount) learn(v verdict) mount {
	switch v {
	case succeeded:
		return mount{state: mounted}
	case unknown:
		m.state = max(m.state, uncertain)
	case failed:
		// The error of this attempt says nothing about what another kubelet
		// may have mounted before.
		if m.state == uncertain && !m.reconstructed {
			m.state = absent
		}
	}
	return m
}

// of returns what is known of a volume of a pod.
func (a *actual) of(v *Volume) mount {
	if found := a.volumes[v]; found != nil {
		return *found
	}
	return mount{}
}

// set replaces what is known of a volume of a pod.
func (a *actual) set(v *Volume, m mount) {
	if m.state == absent {
		delete(a.volumes, v)
		return
	}
	a.volumes[v] = &m
}

// forget drops all that is known of a pod's volumes.
func (a *actual) forget(p *Pod) {
	for _, v := range p.Volumes {
		delete(a.volumes, v)
	}
}
