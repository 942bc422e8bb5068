package misuse

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
)

// sorted are the keys of a map, so that a random number always picks the same.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// badContexts lack what says that the volume is an ephemeral one of a pod.
func badContexts() (list []bad) {
	add := func(what string, fields []string, spoil func(context map[string]string)) {
		list = append(list, bad{
			what: "volume context: " + what, method: history.Publish, code: codes.InvalidArgument, fields: fields,
			spoil: func(_ *Site, r *request) { spoil(r.context) },
		})
	}
	fields := []string{"ephemeral"}
	add("nothing", []string{"ephemeral", "pod_uid", "volume_context"}, func(c map[string]string) { clear(c) })
	add("no ephemeral", fields, func(c map[string]string) { delete(c, keyEphemeral) })
	add("ephemeral is false", fields, func(c map[string]string) { c[keyEphemeral] = "false" })
	add("no pod UID", []string{"pod_uid"}, func(c map[string]string) { delete(c, keyPodUID) })
	add("a thousand keys and no ephemeral", fields, func(c map[string]string) {
		for i := range 1000 {
			c[fmt.Sprintf("key-%d", i)] = strings.Repeat("x", 100)
		}
		delete(c, keyEphemeral)
	})
	add("a huge value and no ephemeral", fields, func(c map[string]string) {
		c["key"] = strings.Repeat("x", huge)
		delete(c, keyEphemeral)
	})
	add("keys like paths and no ephemeral", fields, func(c map[string]string) {
		c["../"+volumeID], c["\x00"] = "../"+volumeID, "\n"
		delete(c, keyEphemeral)
	})
	return list
}

// badCapabilities ask for what a directory on one node cannot be.
func badCapabilities() (list []bad) {
	const whole = "volume_capability"
	add := func(what string, fields []string, spoil func(r *request)) {
		list = append(list, bad{
			what: "volume capability: " + what, method: history.Publish, code: codes.InvalidArgument,
			fields: append(fields, whole, "capability"),
			spoil:  func(_ *Site, r *request) { spoil(r) },
		})
	}
	add("nothing", nil, func(r *request) { r.capability = nil })
	add("empty", nil, func(r *request) { r.capability = &csi.VolumeCapability{} })
	add("no access type", []string{"mount", "access_type"}, func(r *request) { r.capability.AccessType = nil })
	add("block", []string{"block", "access_type"}, func(r *request) {
		r.capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	})
	add("no access mode", []string{"access_mode"}, func(r *request) { r.capability.AccessMode = nil })
	for _, mode := range []csi.VolumeCapability_AccessMode_Mode{
		csi.VolumeCapability_AccessMode_UNKNOWN,
		csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
		csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
		4711, // a mode of some future specification
	} {
		add("access mode "+mode.String(), []string{"access_mode"}, func(r *request) { r.capability.AccessMode.Mode = mode })
	}
	// Flags that would do something else than a bind mount of one directory, or
	// that no mount knows.
	for _, flag := range []string{"", "remount", "rbind", "move", "shared", "loop", "ro,remount", "ro\x00", "no-such-flag", "uid=0"} {
		add(fmt.Sprintf("mount flag %q", flag), []string{"mount_flag"}, func(r *request) {
			r.capability.GetMount().MountFlags = []string{flag}
		})
	}
	add("a good and a bad mount flag", []string{"mount_flag"}, func(r *request) {
		r.capability.GetMount().MountFlags = []string{"noexec", "no-such-flag"}
	})
	// The driver does not have the capability VOLUME_MOUNT_GROUP.
	add("a group", []string{"mount_group"}, func(r *request) { r.capability.GetMount().VolumeMountGroup = "0" })
	return list
}
