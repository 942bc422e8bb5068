package quota

import (
	"time"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
)

// Known says that a record of an earlier run has a project.
func (p *Projects) Known(id uint32) {
	if p == nil || !p.IDs.has(id) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := id - p.IDs.First
	if p.recorded.has(n) {
		p.shared[n]++
	}
	p.ids.add(n)
	p.recorded.add(n)
}

// Discarded says that data with a project is in the trash.
func (p *Projects) Discarded(id uint32) {
	if p == nil || !p.IDs.has(id) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids.add(id - p.IDs.First)
	p.trashed.add(id - p.IDs.First)
}

// InTrash says that data with a project was found in the trash. If a record has the project, the
// data has left it.
func (p *Projects) InTrash(id uint32) {
	if p == nil || !p.IDs.has(id) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := id - p.IDs.First; !p.recorded.has(n) {
		p.ids.add(n)
		p.trashed.add(n)
	}
}

// Unlimit takes a project's limit away, if it has one. Call it before the record is forgotten: no limit may stay on
// an ID without a volume. Where it fails, it is tried again before the ID is free.
func (p *Projects) Unlimit(id uint32) {
	if p == nil || id == 0 || p.state == None || p.isShared(id) {
		return
	}
	quota, err := p.Kernel.Read(id)
	if err == nil && quota.Limit != (volume.Size{}) {
		err = p.Kernel.SetLimit(id, volume.Size{})
	}
	if err != nil {
		p.Log.Info("the limit of a deleted volume cannot be taken away; this is tried again before another volume gets its project",
			"project", id, logkeys.Cause, err.Error())
	}
}

// isShared reports whether several records have the project: an earlier version lost track.
func (p *Projects) isShared(id uint32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.IDs.has(id) && p.shared[id-p.IDs.First] > 0
}

// Forgotten says that the record that had a project is gone, or was never written.
func (p *Projects) Forgotten(id uint32) {
	if p == nil || !p.IDs.has(id) {
		return
	}
	n := id - p.IDs.First
	p.mu.Lock()
	switch {
	case p.shared[n] > 1:
		p.shared[n]--
		p.mu.Unlock()
		return
	case p.shared[n] == 1:
		delete(p.shared, n)
		p.mu.Unlock()
		return
	}
	had := p.recorded.has(n)
	p.recorded.remove(n)
	delete(p.strays, n)
	left := had && !p.trashed.has(n)
	p.mu.Unlock()
	if left {
		p.leave(n)
	}
}

// Erased says that data that had a project is not in the trash any more.
func (p *Projects) Erased(id uint32) {
	if p == nil || !p.IDs.has(id) {
		return
	}
	n := id - p.IDs.First
	p.mu.Lock()
	had := p.trashed.has(n)
	p.trashed.remove(n)
	left := had && !p.recorded.has(n)
	p.mu.Unlock()
	if left {
		p.leave(n)
	}
}

// leave frees an ID that no volume has any more, or waits until the kernel counts nothing for it.
func (p *Projects) leave(n uint32) {
	if p.free(n, true) {
		p.count()
		return
	}
	p.mu.Lock()
	p.waiting.leaving = append(p.waiting.leaving, leaving{n, time.Now()})
	p.setTimer()
	p.mu.Unlock()
	p.count()
}

// free frees an ID if the kernel counts nothing for it, and reports whether it needs no further
// look. A limit that stayed on an ID of ours is taken away. A kernel that counts nothing at all, as
// without the mount option, is not asked.
func (p *Projects) free(n uint32, ours bool) bool {
	id := p.IDs.First + n
	var quota Quota
	var err error
	if p.state != None {
		quota, err = p.Kernel.Read(id)
	}
	if err == nil && ours && quota.Limit != (volume.Size{}) {
		if err = p.Kernel.SetLimit(id, volume.Size{}); err == nil {
			quota.Limit = volume.Size{}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.recorded.has(n) || p.trashed.has(n) {
		return true // it has found another way
	}
	if err != nil || !quota.isFree() || p.setting[n] {
		return false
	}
	p.ids.remove(n)
	return true
}
