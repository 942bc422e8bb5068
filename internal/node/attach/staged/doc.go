// Package staged keeps a small durable record of each volume of an array that is staged on the node, or
// that was being staged or unstaged when the daemon ended. The record says which device and which session
// belong to the volume.
//
// It is written before the first change for a volume, and removed after the last one is undone. Each record
// is a file of its own in one directory, replaced as a whole: a crash leaves the old record or the new one.
// [Staged.Save] and [Staged.Remove] return when that is durable. After an error either may be there.
//
// A file that is damaged is renamed to end in .damaged and logged; nothing else is done to it. For the
// caller there is no record then: the mount table and the kernel's lists of devices say what is there. A
// record of a later version of Katbox stays as it is, and to read it is an error.
//
// A file is named after its volume and holds one JSON object:
//
//	{"version": 1, "volume": "pvc-1", "path": "/var/lib/kubelet/...", "fsType": "ext4", "options": ["noatime"],
//	 "attachment": {"protocol": "iscsi", "node": "n1", "target": "iqn...", "portal": "10.0.0.1:3260", "lun": 1, ...},
//	 "serial": "...", "formatting": true}
//
// Fields that are empty or false are left out; fields that this version does not know are ignored. It holds
// no secrets.
//
// Nothing here touches an array, so nothing here waits for one.
package staged
