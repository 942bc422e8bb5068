package unpack

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
)

const (
	// saveEvery is how often a call saves how far it came; rarer, if saving takes more than a part in savingPart.
	saveEvery  = time.Second
	savingPart = 20
)

// Checkpoint is how far the unpacking of an archive came. It is for encoding/json. Names may hold any byte.
type Checkpoint struct {
	// Next is where the first entry begins that was not unpacked, in the whole archive.
	Next int64 `json:"next"`
	// Partial is the name of a file that is not complete, in any of the directories.
	Partial string `json:"partial"`
	// Open are the directories that the archive is in, from the top.
	Open []OpenDirectory `json:"open,omitempty"`
	// Places are left out with what is below them. The others are those of a [LeftOutError].
	Places  [][]byte `json:"places,omitempty"`
	Count   int      `json:"count,omitempty"`
	Exist   int      `json:"exist,omitempty"`
	Reasons []Reason `json:"reasons,omitempty"`
	// SkippedSymlinks and Untimed are those of a [Report].
	SkippedSymlinks int `json:"skippedSymlinks,omitempty"`
	Untimed         int `json:"untimed,omitempty"`
}

// Reason is why an entry is left out.
type Reason struct {
	Name []byte `json:"name"`
	Why  string `json:"why"`
}

// OpenDirectory is a directory that is not complete. Its mode and time are known if the archive has said them.
type OpenDirectory struct {
	Name    []byte    `json:"name"`
	Known   bool      `json:"known,omitempty"`
	Mode    int64     `json:"mode,omitempty"`
	ModTime time.Time `json:"mtime,omitzero"`
}

// partialForm is what Checkpoint.Partial looks like. No other file is taken for one that is not complete, and removed.
var partialForm = regexp.MustCompile(`^\.katbox-[A-Z2-7]{26}\.partial$`)

// Check returns why no call has saved c. It may be damaged, or come from another program.
func (c Checkpoint) Check() error {
	if c.Partial != "" && !partialForm.MatchString(c.Partial) {
		return fmt.Errorf("%q is no name of a file that is not complete", c.Partial)
	}
	for _, open := range c.Open {
		if elements, err := split(string(open.Name)); err != nil || len(elements) != 1 {
			return fmt.Errorf("%q is no name of a directory", open.Name)
		}
	}
	return nil
}

// checkpoint describes how far this call came.
func (u *unpacker) checkpoint() Checkpoint {
	c := Checkpoint{
		Next: u.From.Next + u.report.Next, Partial: u.partial,
		Count: u.without.Count, Exist: u.without.Exist,
		SkippedSymlinks: u.report.SkippedSymlinks, Untimed: u.report.Untimed + u.tree.untimed,
	}
	for _, l := range u.tree.levels[1:] {
		open := OpenDirectory{Name: []byte(l.name)}
		if l.header != nil {
			open.Known, open.Mode, open.ModTime = true, l.header.Mode, l.header.ModTime
		}
		c.Open = append(c.Open, open)
	}
	for _, place := range slices.Sorted(maps.Keys(u.without.places)) {
		c.Places = append(c.Places, []byte(place))
	}
	for _, l := range u.without.First {
		c.Reasons = append(c.Reasons, Reason{[]byte(l.Name), l.Why})
	}
	return c
}

// goOn begins where an earlier call ended.
func (u *unpacker) goOn(c Checkpoint) error {
	if err := c.Check(); err != nil {
		return err
	}
	u.tree.ours, u.tree.levels[0].ours = true, true
	if u.partial = c.Partial; u.partial == "" {
		u.partial = ".katbox-" + rand.Text() + suffix
	}
	u.tree.enters = func(dir folder) { _ = dir.remove(u.partial) } // There is one at most.
	u.tree.enters(u.tree.here().dir)
	u.report.SkippedSymlinks, u.report.Untimed = c.SkippedSymlinks, c.Untimed
	u.without.Count, u.without.Exist = c.Count, c.Exist
	for _, place := range c.Places {
		if u.without.places == nil {
			u.without.places = map[string]struct{}{}
		}
		u.without.places[string(place)] = struct{}{}
	}
	for _, r := range c.Reasons {
		u.without.First = append(u.without.First, LeftOut{string(r.Name), r.Why})
	}
	for _, open := range c.Open {
		// It may be gone, and is made again.
		if err := u.tree.descend(string(open.Name), 0o700); err != nil {
			return err
		}
		if open.Known {
			u.tree.here().header = &tar.Header{Mode: open.Mode, ModTime: open.ModTime}
		}
	}
	return nil
}

// savingAll is all with checkpoints.
func (u *unpacker) savingAll() error {
	if err := u.goOn(u.From); err != nil {
		return err
	}
	if err := u.Save(u.checkpoint()); err != nil {
		return err
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		u.saveNowAndThen(stop)
	}()
	err := u.all()
	last := u.checkpoint()
	u.mu.Unlock()
	close(stop)
	<-stopped
	u.mu.Lock()
	if err == nil || errors.As(err, new(*LeftOutError)) {
		return err
	}
	return errors.Join(err, u.tree.pause(), u.Save(last))
}

// saveNowAndThen saves how far the unpacking came until it ends. A checkpoint that cannot be saved is followed by
// another; until then the one before is good.
func (u *unpacker) saveNowAndThen(stop <-chan struct{}) {
	wait, saved := saveEvery, int64(0)
	for {
		select {
		case <-stop:
			return
		case <-time.After(wait):
		}
		u.mu.Lock()
		c := u.checkpoint()
		u.mu.Unlock()
		if c.Next == saved {
			continue
		}
		begin := time.Now()
		if u.Save(c) == nil {
			saved = c.Next
		}
		wait = max(saveEvery, savingPart*time.Since(begin))
	}
}
