package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/pools"
)

// knownName is the file that says which pool is in which directory. An empty directory where a pool was is a disk
// that is not mounted, and no place for a new pool.
const knownName = "pools.json"

// known is that file: UUIDs by path. It is on the node's own disk, beside the socket.
type known struct {
	file string

	mu    sync.Mutex
	pools map[string]string
}

// openKnown reads the file. Directories that are not given any more are forgotten.
func openKnown(file string, given []string) (*known, error) {
	k := &known{file: file, pools: map[string]string{}}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &k.pools)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, which says which pool is in which directory, cannot be read; check that the disks of all pools are mounted, "+
			"and remove it: %w", file, err)
	}
	all := map[string]string{}
	for _, path := range given {
		if uuid := k.pools[path]; pools.IsUUID(uuid) {
			all[path] = uuid
		}
	}
	if !maps.Equal(all, k.pools) {
		return k, k.save(all)
	}
	return k, nil
}

// at returns the UUID of the pool that was in a directory; empty for none.
func (k *known) at(path string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pools[path]
}

// remember makes durable which pool is in a directory.
func (k *known) remember(path, uuid string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pools[path] == uuid {
		return nil
	}
	all := maps.Clone(k.pools)
	all[path] = uuid
	return k.save(all)
}

// save replaces the file as a whole.
func (k *known) save(all map[string]string) error {
	content, err := json.Marshal(all)
	if err == nil {
		err = k.write(append(content, '\n'))
	}
	if err != nil {
		return fmt.Errorf("note which pool is in which directory: %w", err)
	}
	k.pools = all
	return nil
}

func (k *known) write(content []byte) (err error) {
	if err := kernel.MkdirAll(filepath.Dir(k.file), 0o750); err != nil {
		return err
	}
	dir, err := os.OpenRoot(filepath.Dir(k.file))
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(k.file)
	fresh, err := kernel.CreateIn(dir, name+".new", os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = kernel.WriteAt(fresh, content, 0)
	if err == nil {
		err = kernel.Sync(fresh)
	}
	if err = errors.Join(err, fresh.Close()); err != nil {
		return err
	}
	if err := kernel.RenameIn(dir, name+".new", name); err != nil {
		return err
	}
	here, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(kernel.Sync(here), here.Close())
}
