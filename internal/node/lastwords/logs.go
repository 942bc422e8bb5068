package lastwords

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
)

const (
	// mostFiles bounds the files of a pod that are held open, or copied, mostContainers the directories in that of a
	// pod that are looked at. A kubelet keeps five files of each container, and those of the restart before.
	mostFiles      = 256
	mostContainers = 128
	// mostNames bounds the names that are read of a directory.
	mostNames = 4096
	// removedFor is how long a file stays open that the kubelet has removed though the pod goes on.
	removedFor = time.Minute
	// mostLooks bounds the calls of Look that may wait for a disk, each with a thread.
	mostLooks = 64
)

// Config is what Logs work with.
type Config struct {
	// Dir is the directory in which the kubelet has those of the pods.
	Dir string
	// MostOpen bounds the files that are held open; at least 1.
	MostOpen int
	// Opened is called with the number of files that are open, when it has changed. It may be called by several goroutines;
	// nil for none.
	Opened func(count int)
	// Log may be zero.
	Log logr.Logger
}

// Logs follows the log directories of pods. Its methods may be called from several goroutines.
type Logs struct {
	cfg    Config
	root   int
	opener *beneath.Opener
	watch  *watch
	open   atomic.Int64
	// looks has a place for each Look.
	looks chan struct{}

	mu   sync.Mutex
	pods map[volume.PodUID]*pod
	// names are the pods by the names of their directories.
	names map[string]*pod
}

// Open opens the directory of all pods, an absolute path. Run follows it.
func Open(cfg Config) (*Logs, error) {
	if !filepath.IsAbs(cfg.Dir) || cfg.MostOpen < 1 {
		return nil, fmt.Errorf("lastwords: Config.Dir %q is no absolute path, or Config.MostOpen %d is below 1", cfg.Dir, cfg.MostOpen)
	}
	root, err := unix.Openat2(unix.AT_FDCWD, cfg.Dir, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC})
	if err != nil {
		return nil, fmt.Errorf("open the directory of the logs of pods, %s: %w", cfg.Dir, err)
	}
	l := &Logs{cfg: cfg, root: root, looks: make(chan struct{}, mostLooks), pods: map[volume.PodUID]*pod{}, names: map[string]*pod{}}
	if l.opener, err = beneath.New(root); err == nil {
		l.watch, err = newWatch(root)
	}
	if err != nil {
		unix.Close(root)
		return nil, fmt.Errorf("the directory of the logs of pods, %s: %w", cfg.Dir, err)
	}
	return l, nil
}

// Close closes all files. No other method may be running, and none is called afterwards.
func (l *Logs) Close() {
	_, left := l.watch.take()
	for _, p := range append(left, l.all()...) {
		p.close()
	}
	l.watch.close()
	unix.Close(l.root)
}

// Follow begins to follow the directory of a pod, which need not exist yet. It does not block: Run opens what is there. It
// may be called again; Leave is called as often.
func (l *Logs) Follow(of Pod) {
	directory := of.directory()
	if directory == "" {
		return
	}
	l.mu.Lock()
	p := l.pods[of.UID]
	if p == nil {
		p = &pod{logs: l, Pod: of, name: directory, files: map[beneath.ID]*file{}, watches: map[int]struct{}{}}
		l.pods[of.UID], l.names[directory] = p, p
	}
	p.users++
	l.mu.Unlock()
	l.watch.look(p)
}

// Look opens what there is of a pod that is followed. Where the kernel says that all is open it makes one system call, else
// a few for each container. Where the disk does not answer it goes on behind the call, which returns once ctx ends.
func (l *Logs) Look(ctx context.Context, of volume.PodUID) {
	p := l.upToDate(of)
	if p == nil || p.isSeen() {
		return
	}
	select {
	case l.looks <- struct{}{}:
	case <-ctx.Done():
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.look()
		<-l.looks
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// Leave ends a Follow. It does not block: with the last one Run closes the files of the pod.
func (l *Logs) Leave(of volume.PodUID) {
	l.mu.Lock()
	p := l.pods[of]
	if p != nil {
		p.users--
	}
	last := p != nil && p.users == 0
	if last {
		delete(l.pods, of)
		delete(l.names, p.name)
	}
	l.mu.Unlock()
	if last {
		l.watch.leave(p)
	}
}

// Run follows the directories until ctx ends. It is called once.
func (l *Logs) Run(ctx context.Context) { l.watch.run(ctx, l) }

func (l *Logs) of(uid volume.PodUID) *pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pods[uid]
}

// upToDate is of, and lets the pod know what has happened to its directories.
func (l *Logs) upToDate(uid volume.PodUID) *pod {
	p := l.of(uid)
	if p != nil {
		_ = l.watch.catchUp(l) // Run reports it
	}
	return p
}

// named returns the pod whose directory has a name; nil if it is not followed.
func (l *Logs) named(directory string) *pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names[directory]
}

func (l *Logs) all() []*pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*pod, 0, len(l.pods))
	for _, p := range l.pods {
		all = append(all, p)
	}
	return all
}

// mayOpen reports whether one more file may be held open, and counts it.
func (l *Logs) mayOpen() bool {
	if l.open.Load() >= int64(l.cfg.MostOpen) {
		return false
	}
	l.count(1)
	return true
}

// Crowded reports whether seven eighths of the files are open that may be: those of pods to come may find no place.
func (l *Logs) Crowded() bool { return l.open.Load() > int64(l.cfg.MostOpen)*7/8 }

func (l *Logs) count(more int64) {
	if now := l.open.Add(more); l.cfg.Opened != nil {
		l.cfg.Opened(int(now))
	}
}

// sorted sorts the files of a pod: those of each container together, its newest first.
func sorted(files []*file) []*file {
	slices.SortFunc(files, func(a, b *file) int {
		return cmp.Or(cmp.Compare(a.container, b.container), newer(a.name, b.name), a.removed.Compare(b.removed))
	})
	return files
}
