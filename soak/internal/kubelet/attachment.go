package kubelet

import "slices"

// attachment is a VolumeAttachment, the object by which the attach-detach
// controller, the external-attacher and the kubelet know of each other's work.
type attachment struct {
	// volume is the pod's volume for which it was made, for the story.
	volume *Volume
	// tried says that a ControllerPublishVolume was sent, so that the volume
	// may be attached and needs a ControllerUnpublishVolume.
	tried    bool
	attached bool
	// deleted says that it is to be detached. There is no way back.
	deleted bool
	context map[string]string
}

// requireAttach says whether volumes of the driver have to be attached.
func (a *API) requireAttach(required bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attachRequired = required
}

// attached returns the publish context of a volume, and whether it is attached
// or does not need to be.
func (a *API) attached(handle string) (map[string]string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.attachRequired {
		return nil, true
	}
	if found := a.attachments[handle]; found != nil && found.attached && !found.deleted {
		return found.context, true
	}
	return nil, false
}

// HasAttachment reports whether there is a VolumeAttachment of a volume, attached
// or not.
func (a *API) HasAttachment(handle string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.attachments[handle] != nil
}

// toAttach creates the VolumeAttachments that are missing, and returns copies of
// all that are not attached and should be.
func (a *API) toAttach() []attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []attachment
	for handle, v := range a.wanted() {
		found := a.attachments[handle]
		if found == nil {
			found = &attachment{volume: v}
			if a.attachments == nil {
				a.attachments = make(map[string]*attachment)
			}
			a.attachments[handle] = found
			v.Story.Note("VolumeAttachment created")
		}
		if !found.attached && !found.deleted {
			list = append(list, *found)
		}
	}
	return list
}

// toDetach deletes the VolumeAttachments that are not wanted or used, and returns
// copies of all that are not detached yet. It decides under the same lock by
// which a pod is created, so that no pod can come in between.
func (a *API) toDetach() []attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	wanted := a.wanted()
	var list []attachment
	for handle, found := range a.attachments {
		if wanted[handle] == nil && !a.inUse[handle] {
			found.deleted = true
		}
		if found.deleted {
			list = append(list, *found)
		}
	}
	return list
}

// wanted returns a volume for each handle that a pod wants. Its caller has the
// lock.
func (a *API) wanted() map[string]*Volume {
	wanted := make(map[string]*Volume)
	for _, p := range a.pods {
		if p.phase() != running {
			continue
		}
		for _, v := range p.Volumes {
			if v.Plan.Persistent && wanted[v.Plan.ID] == nil {
				wanted[v.Plan.ID] = v
			}
		}
	}
	return wanted
}

// attaching notes that an attach is about to be tried.
func (a *API) attaching(handle string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attachments[handle].tried = true
}

// markAttached notes that a volume is attached.
func (a *API) markAttached(handle string, context map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.attachments[handle]
	found.attached, found.context = true, context
	found.volume.Story.Note("attached")
}

// markDetached removes the VolumeAttachment.
func (a *API) markDetached(handle string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attachments[handle].volume.Story.Note("VolumeAttachment deleted")
	delete(a.attachments, handle)
}

// using returns a volume with the handle of some pod on the node, or nil.
func (a *API) using(handle string) *Volume {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.pods {
		i := slices.IndexFunc(p.Volumes, func(v *Volume) bool { return v.Plan.Persistent && v.Plan.ID == handle })
		if i >= 0 {
			return p.Volumes[i]
		}
	}
	return nil
}
