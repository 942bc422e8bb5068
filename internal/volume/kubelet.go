package volume

import "strings"

// FromKubelet reports whether a kubelet may have made the ID: "csi-" and 64 hex digits, the SHA-256
// of the pod's UID and the volume's name.
func (id ID) FromKubelet() bool {
	sum, ok := strings.CutPrefix(string(id), "csi-")
	return ok && isHex(sum, 64)
}

// FromKubelet reports whether uid looks like that of a pod in a cluster: a UUID, which the API
// server assigns, or 32 hex digits, the MD5 that a kubelet assigns to a static pod. The manifest of
// a static pod may set any other UID.
func (uid PodUID) FromKubelet() bool {
	groups := strings.Split(string(uid), "-")
	if len(groups) == 1 {
		return isHex(string(uid), 32)
	}
	lengths := [...]int{8, 4, 4, 4, 12}
	if len(groups) != len(lengths) {
		return false
	}
	for i, group := range groups {
		if !isHex(group, lengths[i]) {
			return false
		}
	}
	return true
}

// isHex reports whether s is the given number of lower case hex digits.
func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}
