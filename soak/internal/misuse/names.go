package misuse

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
)

// huge is far longer than anything that is legal, and still short enough for
// gRPC, in bytes.
const huge = 1 << 20

// badNames are no plain element of a path, or too long for a file system, by
// what is wrong with them.
var badNames = map[string]string{
	"nothing":                  "",
	"the directory itself":     ".",
	"its parent":               "..",
	"a way out":                "../../" + volumeID,
	"a way out and back":       "x/../../" + volumeID,
	"an absolute path":         "/" + volumeID,
	"a path of two elements":   volumeID + "/b",
	"a slash at its end":       volumeID + "/",
	"a NUL byte":               volumeID + "\x00b",
	"256 bytes":                strings.Repeat("x", 256),
	"300 bytes":                strings.Repeat("x", 300),
	"a million bytes and more": strings.Repeat("x", huge),
}

// badIDs are volume IDs that every method has to refuse.
func badIDs() (list []bad) {
	for _, method := range []history.Method{history.Publish, history.Unpublish, getVolumeStats} {
		for _, what := range sorted(badNames) {
			list = append(list, bad{
				what: "volume ID: " + what, method: method, code: codes.InvalidArgument, fields: []string{"volume_id"},
				spoil: func(_ *Site, r *request) { r.id = badNames[what] },
			})
		}
	}
	return list
}

// badPods are pod UIDs that would be directories elsewhere than in the working
// directory, or that the driver has for itself there.
func badPods() (list []bad) {
	names := map[string]string{"the driver's trash": ".trash", "the driver's records": ".katbox.db"}
	maps.Copy(names, badNames)
	for _, what := range sorted(names) {
		list = append(list, bad{
			what: "pod UID: " + what, method: history.Publish, code: codes.InvalidArgument, fields: []string{"pod_uid"},
			spoil: func(_ *Site, r *request) { r.context[keyPodUID] = names[what] },
		})
	}
	return list
}

// badPaths are target paths that are not below the kubelet's pods directory.
func badPaths() (list []bad) {
	paths := map[string]func(s *Site) string{
		"nothing":                       func(*Site) string { return "" },
		"a relative path":               func(*Site) string { return volumeID + "/mount" },
		"relative, with the right name": func(s *Site) string { return strings.TrimPrefix(s.target, "/") },
		"the root directory":            func(*Site) string { return "/" },
		"the kubelet's directory":       func(s *Site) string { return s.kubelet },
		"the pods directory":            func(s *Site) string { return s.pods() },
		"the pods directory and slash":  func(s *Site) string { return s.pods() + "/" },
		"the pods directory and dot":    func(s *Site) string { return s.pods() + "/." },
		"the pods directory by ..":      func(s *Site) string { return s.pod() + "/.." },
		"beside the pods directory":     func(s *Site) string { return s.kubelet + "/" + volumeID },
		"like the pods directory":       func(s *Site) string { return s.pods() + "-" + volumeID },
		"out of the pods directory":     func(s *Site) string { return s.pods() + "/../" + volumeID },
		"out of the pod by ..":          func(s *Site) string { return s.pod() + "/../../../" + volumeID },
		"out of the kubelet's":          func(s *Site) string { return filepath.Dir(s.kubelet) + "/" + volumeID },
		"the working directory":         func(s *Site) string { return s.work },
		"in the working directory":      func(s *Site) string { return s.work + "/" + volumeID },
		"a NUL byte":                    func(s *Site) string { return s.target + "\x00b" },
		"more than PATH_MAX":            func(s *Site) string { return s.pod() + strings.Repeat("/x", 3000) },
		"a million bytes and more":      func(s *Site) string { return s.pod() + "/" + strings.Repeat("x", huge) },
	}
	for _, method := range []history.Method{history.Publish, history.Unpublish} {
		for _, what := range sorted(paths) {
			list = append(list, bad{
				what: "target path: " + what, method: method, code: codes.InvalidArgument, fields: []string{"target_path"},
				spoil: func(s *Site, r *request) { r.path = paths[what](s) },
			})
		}
	}
	return append(list, bad{
		what: "volume path: nothing", method: getVolumeStats, code: codes.InvalidArgument, fields: []string{"volume_path"},
		spoil: func(_ *Site, r *request) { r.path = "" },
	}, bad{
		what: "volume path: " + fmt.Sprintf("%d bytes", huge), method: getVolumeStats, code: codes.NotFound,
		spoil: func(s *Site, r *request) { r.path = s.pod() + "/" + strings.Repeat("x", huge) },
	})
}
