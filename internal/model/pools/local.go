package pools

import (
	"regexp"
	"strings"
)

// topologyPrefix begins the key of a pool's topology segment; see [TopologyKey].
const topologyPrefix = "local.csi.katbox.io/"

// TopologyValue is the value of each segment.
const TopologyValue = "here"

// PoolContext is the key in the volume context of a volume on a node under which the UUID of its pool is.
const PoolContext = "pools.katbox.io/pool"

// TopologyKey returns the key of the topology segment of a pool on a node, identified by its UUID. Each pool has a key
// of its own, so that a disk may move to another node, and a node may have several.
func TopologyKey(uuid string) string { return topologyPrefix + uuid }

// PoolOfKey returns the UUID of the pool whose segment has a key.
func PoolOfKey(key string) (uuid string, ok bool) {
	uuid, ok = strings.CutPrefix(key, topologyPrefix)
	return uuid, ok && IsUUID(uuid)
}

var uuidText = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// IsUUID reports whether a pool on a node may have the UUID.
func IsUUID(s string) bool { return uuidText.MatchString(s) }

// LocalPoolName returns the name of the Pool that the controller makes for a directory on a node.
func LocalPoolName(class, uuid string) string {
	const longest = 253 // of an object in Kubernetes
	suffix := "-" + strings.ReplaceAll(uuid, "-", "")[:12]
	if len(class)+len(suffix) > longest {
		class = "p-" + digest(class)
	}
	return class + suffix
}
