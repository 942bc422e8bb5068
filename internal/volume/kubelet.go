package volume

import "strings"

// FromKubelet tells whether id is what a kubelet calls an inline volume: "csi-" and
// the SHA-256 of the pod's UID and the volume's name in 64 hex digits.
func (id ID) FromKubelet() bool {
	sum, ok := strings.CutPrefix(string(id), "csi-")
	return ok && isHex(sum, 64)
}

// FromKubelet tells whether uid is what a pod is called in a cluster: a UUID, which
// the API server gives, or the MD5 in 32 hex digits that a kubelet gives to a static
// pod. The manifest of a static pod may give it any other UID.
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

// isHex tells whether s is the given number of lower case hex digits.
func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}
