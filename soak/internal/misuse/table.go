package misuse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
)

// row is one way to make a bad request of a good one: a call for each method and value.
type row struct {
	name    string
	methods []history.Method
	code    codes.Code // what CSI wants as the answer
	field   string     // what the message has to name, if anything
	// values may have $kubelet, $pods, $pod, $target and $work in them.
	values []string
	spoil  func(r *request, value string)
}

// stats is a method that only bad calls use.
const stats history.Method = "NodeGetVolumeStats"

const (
	// Keys of the volume context that the kubelet sets.
	keyEphemeral = "csi.storage.k8s.io/ephemeral"
	keyPodUID    = "csi.storage.k8s.io/pod.uid"

	invalid = codes.InvalidArgument
	mode    = "access_mode"
)

var (
	publish = []history.Method{history.Publish}
	ending  = []history.Method{history.Publish, history.Unpublish}
	all     = []history.Method{history.Publish, history.Unpublish, stats}
	asking  = []history.Method{stats}

	once = []string{""}
	// huge is far longer than anything that is legal, and still short enough for gRPC.
	huge = strings.Repeat("x", 1<<20)
	// elements are no plain element of a path, or too long for a file system.
	elements = []string{
		"", ".", "..", "../../" + volumeID, "x/../../" + volumeID, "/" + volumeID, volumeID + "/b", volumeID + "/",
		volumeID + "\x00b", strings.Repeat("x", 256), huge,
	}
)

var table = slices.Concat([]row{
	{"volume ID", all, invalid, "volume_id", elements, func(r *request, v string) { r.VolumeId = v }},
	// The last two are the driver's own.
	{"pod UID", publish, invalid, "pod_uid", append([]string{".trash", ".katbox.db"}, elements...), setContext(keyPodUID)},
	{"target path", ending, invalid, "target_path", []string{
		"", volumeID + "/mount", "/", "$kubelet", "$pods", "$pods/", "$pods/.", "$pod/..", "$kubelet/" + volumeID,
		"$pods-" + volumeID, "$pods/../" + volumeID, "$pod/../../../" + volumeID, "$kubelet/../" + volumeID, "$work",
		"$work/" + volumeID, "$target\x00b", "$pod" + strings.Repeat("/x", 3000), "$pod/" + huge,
	}, setPath},
	{"relative target path", ending, invalid, "target_path", []string{"$target"}, func(r *request, v string) { r.TargetPath = v[1:] }},
	{"volume path", asking, invalid, "volume_path", once, setPath},
	{"volume path", asking, codes.NotFound, "", []string{"$pod/" + huge, "$target"}, setPath},

	{"no volume context", publish, invalid, "ephemeral", once, func(r *request, _ string) { r.VolumeContext = nil }},
	{"volume context without", publish, invalid, "ephemeral", []string{keyEphemeral}, unsetContext},
	{"volume context without", publish, invalid, "pod_uid", []string{keyPodUID}, unsetContext},
	{"ephemeral", publish, invalid, "ephemeral", []string{"false"}, setContext(keyEphemeral)},
	{"volume context full of nonsense and without", publish, invalid, "ephemeral", []string{keyEphemeral}, func(r *request, key string) {
		for i := range 1000 {
			r.VolumeContext[fmt.Sprintf("key-%d", i)] = strings.Repeat("x", 100)
		}
		r.VolumeContext["huge"], r.VolumeContext["../"+volumeID], r.VolumeContext["\x00"] = huge, "../"+volumeID, "\n"
		unsetContext(r, key)
	}},

	{"no volume capability", publish, invalid, "capability", once, func(r *request, _ string) { r.VolumeCapability = nil }},
	{"empty volume capability", publish, invalid, "capability", once, func(r *request, _ string) {
		r.VolumeCapability = &csi.VolumeCapability{}
	}},
	{"no access type", publish, invalid, "capability", once, func(r *request, _ string) { r.VolumeCapability.AccessType = nil }},
	{"a block device", publish, invalid, "capability", once, func(r *request, _ string) {
		r.VolumeCapability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	}},
	{"no access mode", publish, invalid, mode, once, func(r *request, _ string) { r.VolumeCapability.AccessMode = nil }},
	{"access mode", publish, invalid, mode, []string{
		"UNKNOWN", "MULTI_NODE_READER_ONLY", "MULTI_NODE_SINGLE_WRITER", "MULTI_NODE_MULTI_WRITER",
	}, func(r *request, v string) {
		r.VolumeCapability.AccessMode.Mode = csi.VolumeCapability_AccessMode_Mode(csi.VolumeCapability_AccessMode_Mode_value[v])
	}},
	{"access mode of some future specification", publish, invalid, mode, once, func(r *request, _ string) {
		r.VolumeCapability.AccessMode.Mode = 4711
	}},
	// Flags that would do something else than a bind mount of one directory, or that no mount knows.
	{"mount flag", publish, invalid, "mount_flag", []string{
		"", "remount", "rbind", "move", "shared", "loop", "ro,remount", "ro\x00", "no-such-flag", "uid=0",
	}, func(r *request, v string) { r.VolumeCapability.GetMount().MountFlags = []string{v} }},
	{"mount flags noexec and", publish, invalid, "mount_flag", []string{"no-such-flag"}, func(r *request, v string) {
		r.VolumeCapability.GetMount().MountFlags = []string{"noexec", v}
	}},
	// The driver does not have the capability VOLUME_MOUNT_GROUP.
	{"group", publish, invalid, "mount_group", []string{"0"}, func(r *request, v string) {
		r.VolumeCapability.GetMount().VolumeMountGroup = v
	}},

	// To keep silent about what the driver does not do, or does not understand, would promise it. The
	// volume of a bad call is not read-only, so that it can attach nothing.
},
	attribute("sizeLimit", "", "0", "-1Gi", "63Ki", "10GB", "ten", "1 Gi", "1e99", "2Ei", strings.Repeat("1", 65)),
	attribute("attach", "", "x", "/x", "x/", "a/b/c", "../x/data-0", "x/Data", "x/"+strings.Repeat("y", 320), "pod/volume"),
	attribute("inodeLimit", "", "0", "1", "-100k", "many", "2T", "0x10"),
	attribute("lifespan", "", "0s", "-1h", "0d", "1.5d", "1h1d", "100y", "36", "for ever", "1h\n"),
	attribute("lifespanSucceeded", "0s", "1week"),
	attribute("mode", "", "0", "0888", "4755", "rwx", "07777"),
	attribute("retain", "", "always", "Sometimes"),
	// Near to one that there is, or to none.
	attribute("sizelimit", "1Gi"), attribute("size", "1Gi"), attribute("lifeSpan", "1h"),
	attribute("nobody-knows-this", "x"), attribute("../sizeLimit", "1Gi"),
)

func setPath(r *request, v string) { r.TargetPath = v }

func setContext(key string) func(*request, string) {
	return func(r *request, v string) { r.VolumeContext[key] = v }
}

func unsetContext(r *request, key string) { delete(r.VolumeContext, key) }

// attribute has values that no pod may give it, or is none.
func attribute(key string, values ...string) []row {
	return []row{{"attribute " + key, publish, invalid, key, values, setContext(key)}}
}
