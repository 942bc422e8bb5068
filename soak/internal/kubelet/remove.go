package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// remove removes what is left of a pod's directories. It fails, and is tried
// again, as long as anything is mounted there or in the way.
func (k *Kubelet) remove(p *Pod) operation {
	return func(context.Context) (func(), error) {
		if err := k.removeDirs(p); err != nil {
			return func() {}, err
		}
		return k.gone(p), nil
	}
}

// drop lets go of a pod that was forgotten, once no call for it is on its way.
func (k *Kubelet) drop(p *Pod) operation {
	return func(context.Context) (func(), error) { return k.gone(p), nil }
}

func (k *Kubelet) gone(p *Pod) (apply func()) {
	k.cfg.API.remove(p)
	k.cfg.Listener.Gone(p)
	return func() { delete(k.started, p) }
}

func (k *Kubelet) removeDirs(p *Pod) error {
	for _, v := range p.Volumes {
		stillMounted, err := removeMountDir(v.Story.Target, k.cfg.Mounted)
		if err != nil {
			return err
		}
		if stillMounted {
			return fmt.Errorf("remove the directories of pod %s: %s is mounted", p.Plan.UID, v.Story.Target)
		}
	}
	return removePodDir(k.cfg.Root, p.Plan.UID)
}

// Forget does to a pod what the kubelet's housekeeping does to one that is
// deleted while its volumes are being mounted: it removes the pod's directories,
// under the driver as it were, and no unpublish ever comes. Operations in flight
// go on, but their outcome is ignored. What cannot be removed is left. It is an
// error if the pod is not on the node, or goes already, or the kubelet crashed.
func (k *Kubelet) Forget(p *Pod) error {
	return k.forget(p, "the directories of its pod are removed and no unpublish comes", func() {
		for _, v := range p.Volumes {
			k.forgetDirs(v)
		}
		// It may well be that the driver has left something there.
		_ = removePodDir(k.cfg.Root, p.Plan.UID)
	})
}

// LeaveBehind is Forget by a kubelet that stops at the file beside the target, as one does with a pod that was gone
// after a reboot (kubernetes#105536): the rest of the pod's directory stays for ever, and no later kubelet makes
// anything of it.
func (k *Kubelet) LeaveBehind(p *Pod) error {
	return k.forget(p, "its target is removed, the file beside it stays for ever, and no unpublish comes", func() {
		k.cfg.API.leave(p)
		for _, v := range p.Volumes {
			k.removeEach(v, v.Story.Target)
		}
	})
}

func (k *Kubelet) forget(p *Pod, how string, remove func()) error {
	about := key{pod: p.Plan.UID}
	began := make(chan error, 1)
	alive := k.post(func() {
		if !k.pending.begin(about, "forget pod", time.Now()) {
			began <- fmt.Errorf("forget pod %s: it is being removed", p.Plan.UID)
			return
		}
		if !k.cfg.API.forget(p) {
			k.pending.end(about, false, time.Now())
			began <- fmt.Errorf("forget pod %s: it is not on the node", p.Plan.UID)
			return
		}
		k.actual.forget(p)
		k.group.Add(1)
		began <- nil
	})
	if !alive {
		return fmt.Errorf("forget pod %s: the kubelet crashed", p.Plan.UID)
	}
	if err := <-began; err != nil {
		return err
	}
	defer k.group.Done()
	for _, v := range p.Volumes {
		v.Story.Note("kubelet forgot it: %s", how)
	}
	remove()
	for _, v := range p.Volumes {
		k.tell(v, Forgotten)
	}
	k.post(func() { k.pending.end(about, false, time.Now()) })
	return nil
}

// forgetDirs removes the directories of a volume as far as they can be.
func (k *Kubelet) forgetDirs(v *Volume) {
	target := v.Story.Target
	dir := filepath.Dir(target)
	paths := []string{filepath.Join(dir, volumeDataFile), dir}
	if isMounted, err := k.cfg.Mounted(target); err == nil && !isMounted {
		paths = append([]string{target}, paths...)
	}
	k.removeEach(v, paths...)
}

func (k *Kubelet) removeEach(v *Volume, paths ...string) {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			v.Story.Note("left: %v", err)
		}
	}
}
