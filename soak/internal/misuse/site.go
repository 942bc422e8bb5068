package misuse

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/testbed"
)

// Names of what bad calls are about. No pod of a run has the same, so that
// whatever is found by these names comes of a bad call.
const (
	podUID     = "soak-misuse-pod"
	volumeID   = "csi-soak-misuse"
	volumeName = "misuse"
)

// Site is where bad calls are made: a pod directory with everything that a good
// call needs, so that nothing but the bad input stands in a call's way. It may
// be used by many goroutines.
type Site struct {
	kubelet, work string
	// target is what a good call would name. Only its parent exists.
	target string

	mu sync.Mutex
	// watched are the paths that a bad call may lead to, and what was there in
	// the beginning.
	watched map[string]found
}

// found is what is at a path.
type found struct {
	there  bool
	device uint64
	inode  uint64
	mount  uint64
}

// NewSite makes the directory of a pod below the kubelet's directory. Both
// directories have to be absolute paths without symlinks. No other test may need
// the pod; Close removes it.
func NewSite(kubelet, work string) (*Site, error) {
	s := &Site{kubelet: kubelet, work: work, watched: make(map[string]found)}
	v := testbed.Volume{Kubelet: kubelet, Pod: podUID, Name: volumeName}
	s.target = v.Target()
	if err := v.MakeTargetDir(); err != nil {
		return nil, fmt.Errorf("a pod for bad calls: %w", err)
	}
	for _, c := range calls {
		for _, path := range s.leadsTo(c.request(s)) {
			if _, ok := s.watched[path]; ok {
				continue
			}
			now, err := look(path)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("look at what bad calls may lead to: %w", err), s.Close())
			}
			s.watched[path] = now
		}
	}
	return s, nil
}

func (s *Site) pods() string { return filepath.Join(s.kubelet, "pods") }

func (s *Site) pod() string { return filepath.Join(s.pods(), podUID) }

// expand puts the site's paths into a value.
func (s *Site) expand(value string) string {
	return os.Expand(value, func(name string) string {
		return map[string]string{"kubelet": s.kubelet, "pods": s.pods(), "pod": s.pod(), "target": s.target, "work": s.work}[name]
	})
}

// good is a request with nothing wrong.
func (s *Site) good() *request {
	return testbed.Publish(volumeID, s.target, podUID, map[string]string{
		"csi.storage.k8s.io/pod.name":            "misuse",
		"csi.storage.k8s.io/pod.namespace":       "soak",
		"csi.storage.k8s.io/serviceAccount.name": "default",
	})
}

// leadsTo are the paths that a request leads to if a driver takes it as it is.
func (s *Site) leadsTo(r *request) []string {
	// Not joined, but written one after the other, so that they are read as a careless driver does.
	paths := mayBe(s.work + "/" + r.GetVolumeContext()[keyPodUID] + "/" + r.GetVolumeId())
	if filepath.IsAbs(r.GetTargetPath()) {
		return append(paths, mayBe(r.GetTargetPath())...)
	}
	for _, from := range []string{"/", s.kubelet, s.work} {
		paths = append(paths, mayBe(from+"/"+r.GetTargetPath())...)
	}
	return paths
}

// Close removes the pod's directory. An error says that something is in it
// that was not there before.
func (s *Site) Close() error {
	of := filepath.Dir(s.target)
	for dir := of; dir != s.pods(); dir = filepath.Dir(dir) {
		// A kubelet that has found the pod at its start removes it, too, as soon as it is empty.
		if err := os.Remove(dir); err != nil && (dir == of || !errors.Is(err, os.ErrNotExist)) {
			return fmt.Errorf("remove the pod of bad calls: %w", err)
		}
	}
	return nil
}

// Traces looks for what bad calls made, mounted or took away, and returns nil if
// there is nothing. Each trace is told once. It costs a few dozen system calls,
// however many volumes there are.
func (s *Site) Traces() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var traces []error
	for path, before := range s.watched {
		now, err := look(path)
		if err != nil {
			traces = append(traces, err)
			continue
		}
		switch {
		case now == before:
			continue
		case !before.there:
			err = fmt.Errorf("%q was made by a call with bad input", path)
		case !now.there:
			err = fmt.Errorf("%q was removed by a call with bad input", path)
		default:
			err = fmt.Errorf("%q was mounted over, unmounted or replaced by a call with bad input", path)
		}
		s.watched[path] = now
		traces = append(traces, err)
	}
	return errors.Join(traces...)
}

// look sees what is at a path. What cannot be a path has nothing there.
func look(path string) (found, error) {
	var st unix.Statx_t
	for {
		err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT,
			unix.STATX_INO|unix.STATX_MNT_ID, &st)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.EINVAL):
			return found{}, nil
		case err != nil:
			return found{}, fmt.Errorf("look at %q: %w", path, err)
		}
		return found{there: true, device: unix.Mkdev(st.Dev_major, st.Dev_minor), inode: st.Ino, mount: st.Mnt_id}, nil
	}
}

// mayBe are the paths that a driver may make of a name that it does not check:
// as it is, and as C ends it. One that is too long leads nowhere.
func mayBe(path string) (paths []string) {
	if len(path) >= unix.PathMax {
		return nil
	}
	paths = append(paths, filepath.Clean(path))
	if short, _, ok := strings.Cut(path, "\x00"); ok {
		paths = append(paths, filepath.Clean(short))
	}
	return paths
}
