package history

import "time"

// Attachment is what became of another pod that attaches the volume.
type Attachment struct {
	// By is that pod's volume, which has no data of its own; nil if there is none.
	By *Volume
	// Ended is when the kubelet had nothing of it left; zero until then.
	Ended time.Time
}

// BeginAttachment notes that a pod is about to come that attaches the volume.
func (v *Volume) BeginAttachment(by *Volume) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.attachment = Attachment{By: by}
	v.remember(event{at: time.Now(), what: "pod " + by.Pod + " is to attach it"})
}

// EndAttachment notes that nothing is left of that pod.
func (v *Volume) EndAttachment() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.attachment.Ended = time.Now()
	v.remember(event{at: v.attachment.Ended, what: "nothing is left of the pod that attached it"})
}

// Attachment is described at its type.
func (v *Volume) Attachment() Attachment {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.attachment
}
