package optin

import (
	"regexp"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
)

const (
	// PathForm is the form of the path of a volume that is added: with dashes for its slashes it is part of the volume's name.
	PathForm = `^(/[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	// MaxPath is how many characters it has at most.
	MaxPath = 50
	// AddedPrefix and the path, with dashes, are the name of the volume.
	AddedPrefix = "katbox"
)

var pathForm = regexp.MustCompile(PathForm)

// added returns the volume that a pod gets: for the first path of its presets, or for /tmp, at which none of its containers
// mounts anything, nor above or below it.
func (p Params) added(pod *Pod, presets [][]string, asked map[string]string) *Added {
	var paths []string
	for _, lines := range presets {
		if i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, mountLine) }); i >= 0 {
			paths = append(paths, strings.TrimPrefix(lines[i], mountLine))
		}
	}
	if p[TmpKey] == "true" {
		paths = append(paths, Tmp)
	}
	for _, path := range paths {
		if len(path) > MaxPath || !pathForm.MatchString(path) || taken(pod, path) {
			continue
		}
		volume := AddedPrefix + strings.ReplaceAll(path, "/", "-")
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v Volume) bool { return v.Name == volume }) {
			return &Added{Volume: volume, Path: path, Attributes: with(asked, api.KeyConverted, api.Converted, "mode", AddedMode)}
		}
	}
	return nil
}

// taken says whether a container has something at a path, below it or above it.
func taken(pod *Pod, path string) bool {
	return slices.ContainsFunc(pod.containers(), func(c container) bool {
		for _, m := range c.VolumeMounts {
			at := strings.TrimSuffix(m.MountPath, "/") + "/"
			if !strings.HasPrefix(m.MountPath, "/") || strings.HasPrefix(path+"/", at) || strings.HasPrefix(at, path+"/") {
				return true
			}
		}
		for _, d := range c.VolumeDevices {
			if d.DevicePath == path {
				return true
			}
		}
		return false
	})
}
