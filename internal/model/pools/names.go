package pools

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// maxName is the longest name of a volume or a snapshot in bytes: that of a label's value, and less
// than what arrays take for a display name.
const maxName = 63

// subdomain is a DNS-1123 subdomain: the name of an object in Kubernetes.
var subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// VolumeName returns the name of the volume that CSI asks for by this name: the same one where it can
// be the name of a resource.
func VolumeName(requested string) string { return named("v-", requested) }

// SnapshotName returns the name of the snapshot that CSI asks for by this name.
func SnapshotName(requested string) string { return named("s-", requested) }

// named returns s, or a name made of its hash. Names that look like such a one are hashed too, so that
// two requests never get one name.
func named(prefix, s string) string {
	if len(s) <= maxName && subdomain.MatchString(s) && !hashed.MatchString(s) {
		return s
	}
	return prefix + digest(s)
}

// hashed is a name that was made of a hash.
var hashed = regexp.MustCompile(`^[vs]-[0-9a-f]{40}$`)

// IsID reports whether a volume or a snapshot can have the ID: all IDs are names of Kubernetes objects.
func IsID(s string) bool {
	const longest = 253 // of an object in Kubernetes
	return len(s) <= longest && subdomain.MatchString(s)
}

// AttachmentName returns the name of a volume's attachment to a node. No two attachments have one name:
// the first dot ends the volume's.
func AttachmentName(volume, node string) string {
	if s := volume + "." + node; IsID(s) && !strings.Contains(volume, ".") {
		return s
	}
	return "a-" + digest(volume+"\x00"+node)
}

// ServerName returns the name of a node's server record on an array, which several clusters may use.
func ServerName(node, cluster string) string {
	const longest = 128 // of a display name on an array
	suffix := "-" + digest(cluster)[:8]
	if len(node)+len(suffix) > longest {
		return digest(node) + suffix
	}
	return node + suffix
}

// ExternalName returns the name of the resource of a volume or snapshot on a pool's array that Katbox
// has not made.
func ExternalName(pool, displayName string) string {
	if s := pool + "-" + displayName; len(s) <= maxName && subdomain.MatchString(s) {
		return s
	}
	return "x-" + digest(pool+"\x00"+displayName)
}

// digest returns 40 hex digits of the SHA-256.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:20])
}

// CHAPSecretName returns the name of the Secret with what nodes log in to a pool's array with.
func CHAPSecretName(pool string) string {
	const longest = 253
	if s := "chap-" + pool; len(s) <= longest {
		return s
	}
	return "chap-" + digest(pool)
}

// IsSnapshotName reports whether Katbox may have given this name to a snapshot: external-snapshotter
// asks for snapshot-<uid>.
func IsSnapshotName(s string) bool { return snapshotted.MatchString(s) }

var snapshotted = regexp.MustCompile(`^(snapshot-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|s-[0-9a-f]{40})$`)

// IQN returns the name of a node's iSCSI initiator, which Katbox makes up: those that hosts come with are
// often the same on machines that were cloned. It stays the same as long as the node's name and the cluster
// do, and no two nodes have the same one, whatever clusters use an array.
func IQN(node, cluster string) string {
	const longest = 223 // RFC 7143
	prefix := "iqn.2026-11.io.katbox:" + digest(cluster)[:16] + ":"
	if len(prefix)+len(node) <= longest {
		return prefix + node
	}
	// No name of a node has a colon.
	return prefix + node[:longest-len(prefix)-41] + ":" + digest(node)
}
