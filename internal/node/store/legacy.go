package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// legacyVolume is a value of the old driver's bucket "volumes", a published volume.
type legacyVolume struct {
	ID   string `json:"id"`
	Pod  string `json:"podUUID"`
	Path string `json:"path"`
}

// legacyDeleted is a value of its bucket "deletedVolumes", a volume whose data is kept until
// deleteTime + lifespan.
type legacyDeleted struct {
	DeleteTime time.Time `json:"deleteTime"`
	// Lifespan may be missing: that is not a volume whose time is over.
	Lifespan *time.Duration `json:"lifespan"`
	Path     string         `json:"path"`
}

// decodeLegacyVolume returns the record of a published volume. The mount table has its targets: the
// old driver did not keep them.
func decodeLegacyVolume(key, value []byte, workdir string) (volume.Record, error) {
	var v legacyVolume
	if err := json.Unmarshal(value, &v); err != nil {
		return volume.Record{}, err
	}
	pod, id, err := legacyPlace(v.Path, workdir, string(key))
	switch {
	case err != nil:
		return volume.Record{}, err
	case v.ID != string(id):
		return volume.Record{}, fmt.Errorf("id %q is not its key", v.ID)
	case v.Pod != string(pod):
		return volume.Record{}, fmt.Errorf("podUUID %q is not in its path %q", v.Pod, v.Path)
	}
	return volume.Record{ID: id, Pod: pod, Phase: volume.Published}, nil
}

// decodeLegacyDeleted returns the record of a retained volume.
func decodeLegacyDeleted(key, value []byte, workdir string) (volume.Record, error) {
	var d legacyDeleted
	if err := json.Unmarshal(value, &d); err != nil {
		return volume.Record{}, err
	}
	pod, id, err := legacyPlace(d.Path, workdir, string(key))
	switch {
	case err != nil:
		return volume.Record{}, err
	case d.DeleteTime.IsZero():
		return volume.Record{}, errors.New("deleteTime is missing")
	case d.DeleteTime.Unix() < 0:
		return volume.Record{}, fmt.Errorf("deleteTime %v is before 1970", d.DeleteTime)
	case d.Lifespan == nil:
		return volume.Record{}, errors.New("lifespan is missing")
	case *d.Lifespan < 0:
		return volume.Record{}, fmt.Errorf("lifespan %d is negative", *d.Lifespan)
	}
	return volume.Record{
		ID:          id,
		Pod:         pod,
		Phase:       volume.Retained,
		Unpublished: d.DeleteTime,
		Lifespan:    *d.Lifespan,
	}, nil
}

// legacyPlace returns the pod and the volume of a recorded data directory, which the old container
// saw as <working directory>/<pod>/<volume>. If the working directory was mounted elsewhere, the
// last two elements count. Nothing else is used, so no path leads out of the working directory.
func legacyPlace(path, workdir, key string) (volume.PodUID, volume.ID, error) {
	odd := func(why string) (volume.PodUID, volume.ID, error) {
		return "", "", fmt.Errorf("path %q %s", path, why)
	}
	clean := filepath.Clean(path)
	if !filepath.IsAbs(clean) {
		return odd("is not absolute")
	}
	elements := strings.Split(clean[1:], "/")
	if rel, below := strings.CutPrefix(clean, strings.TrimSuffix(filepath.Clean(workdir), "/")+"/"); below {
		if elements = strings.Split(rel, "/"); len(elements) != 2 {
			return odd("is not <working directory>/<pod>/<volume>")
		}
	} else if len(elements) < 3 {
		// With two there is no working directory: the old driver wrote <working directory>/<volume>
		// for a volume whose pod it had forgotten.
		return odd("has no working directory, pod and volume")
	}
	last := elements[len(elements)-2:]
	pod, err := volume.ParsePodUID("pod UID", last[0])
	if err != nil {
		return odd("is not usable: " + err.Error())
	}
	id, err := volume.ParseID("volume ID", last[1])
	if err != nil {
		return odd("is not usable: " + err.Error())
	}
	if last[1] != key {
		return odd("does not end in its key")
	}
	return pod, id, nil
}
