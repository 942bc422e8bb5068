package fakevpsa

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// saved is the file.
type saved struct {
	Settings  Settings          `json:"settings"`
	Next      map[string]uint32 `json:"next"`
	Requests  int64             `json:"requests"`
	Pools     []*Pool           `json:"pools"`
	Volumes   []*Volume         `json:"volumes"`
	Bin       []*Volume         `json:"recycleBin"`
	Servers   []*Server         `json:"servers"`
	Snapshots []*Snapshot       `json:"snapshots"`
	Pending   []*pending        `json:"pending"`
}

func (s *state) file() saved {
	return saved{
		s.settings, s.next, s.requests, s.pools.items, s.volumes.items, s.bin.items, s.servers.items, s.snapshots.items, s.pending,
	}
}

// save replaces the file, if there is one: a reader finds all of a change or nothing.
func (a *Array) save() error {
	if a.path == "" {
		return nil
	}
	data, err := json.MarshalIndent(a.state.file(), "", " ")
	if err != nil {
		return err
	}
	return replace(a.path, append(data, '\n'))
}

func replace(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// load returns nil when there is no file.
func load(path string) (*state, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f saved
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("the state in %s: %w", path, err)
	}
	s := &state{settings: f.Settings, next: f.Next, requests: f.Requests, pending: f.Pending}
	if s.next == nil {
		s.next = map[string]uint32{}
	}
	for _, p := range f.Pools {
		s.pools.put(p)
	}
	for _, v := range f.Volumes {
		s.addVolume(v)
	}
	for _, v := range f.Bin {
		s.bin.put(v)
		s.count(v.Pool, v.Size, v.Allocated)
	}
	for _, sv := range f.Servers {
		s.servers.put(sv)
	}
	for _, sn := range f.Snapshots {
		s.snapshots.put(sn)
	}
	return s, nil
}
