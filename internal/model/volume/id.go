// Package volume holds the nouns of Katbox: volume IDs, places, phases, records, the room on a file
// system, and the errors that every other package uses. It does no I/O and knows no protocol.
//
// A volume is one ephemeral inline volume of one pod. While the pod lives, the volume's data
// directory is bind-mounted at a target path that the kubelet chose. Once the pod is gone, the
// volume is retained for its lifespan.
package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// MaxNameLength is the longest volume ID or pod UID in bytes. Both become the name of a directory,
// which cannot be longer on Linux (NAME_MAX).
const MaxNameLength = 255

// ID identifies a volume on its node. The kubelet's IDs are "csi-" and 64 hex digits, but any plain
// path element is legal.
type ID string

// PodUID identifies the pod that a volume belongs to.
type PodUID string

// Place names a volume's data directory, <working directory>/<pod UID>/<volume ID>.
type Place struct {
	Pod PodUID
	ID  ID
}

// String returns "pod/id".
func (p Place) String() string { return string(p.Pod) + "/" + string(p.ID) }

// ParseID returns s as a volume ID. The error is an [InvalidError] for field of the request.
func ParseID(field, s string) (ID, error) {
	return ID(s), checkName(field, s)
}

// ParsePodUID returns s as a pod UID. The error is an [InvalidError] for field of the request.
func ParsePodUID(field, s string) (PodUID, error) {
	if s == "lost+found" {
		return PodUID(s), Invalid(field, "is lost+found, where fsck puts what it has found")
	}
	return PodUID(s), checkName(field, s)
}

// maxObjectName is the longest name of an object in Kubernetes, in bytes.
const maxObjectName = 253

// ObjectName returns s if it can be the name of an object in Kubernetes: at most 253 lower case
// letters, digits, hyphens and dots. Otherwise it returns "". These names are for people, so an odd
// one is no reason to refuse a publish. Records and log lines without it stay short and plain.
func ObjectName(s string) string {
	if len(s) > maxObjectName || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		return ""
	}
	return s
}

var (
	// kubeletID has the SHA-256 of the pod's UID and the volume's name.
	kubeletID = regexp.MustCompile(`^csi-[0-9a-f]{64}$`)
	// kubeletPod is a UUID, which the API server assigns, or the MD5 that a kubelet assigns to a
	// static pod.
	kubeletPod = regexp.MustCompile(`^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$`)
)

// KubeletID returns the ID that a kubelet gives to an inline volume, by the volume's name in the pod's
// spec (kubernetes pkg/volume/csi/csi_mounter.go, makeVolumeHandle).
func KubeletID(pod PodUID, volumeName string) ID {
	sum := KubeletSum(pod, volumeName)
	return ID(hex.AppendEncode(append(make([]byte, 0, 4+2*len(sum)), "csi-"...), sum[:]))
}

// KubeletSum returns the bytes that the digits of a KubeletID stand for.
func KubeletSum(pod PodUID, volumeName string) [sha256.Size]byte {
	var room [2 * MaxNameLength]byte
	return sha256.Sum256(append(append(room[:0], pod...), volumeName...))
}

// FromKubelet reports whether a kubelet may have made the ID.
func (id ID) FromKubelet() bool { return kubeletID.MatchString(string(id)) }

// FromKubelet reports whether uid looks like that of a pod in a cluster. The manifest of a static
// pod may set any other UID.
func (uid PodUID) FromKubelet() bool { return kubeletPod.MatchString(string(uid)) }

// checkName accepts one plain path element: the daemon creates and deletes a directory of that name
// as root. A leading dot is reserved for the daemon's own files in the working directory.
func checkName(field, s string) error {
	switch {
	case s == "":
		return Invalid(field, "is missing")
	case len(s) > MaxNameLength:
		return Invalid(field, "is longer than 255 bytes")
	case strings.ContainsRune(s, 0):
		return Invalid(field, "contains a NUL byte")
	case strings.Contains(s, "/"):
		return Invalid(field, "contains a slash, but it has to be one plain path element")
	case s[0] == '.':
		return Invalid(field, "begins with a dot, but it has to be one plain path element")
	}
	return nil
}
