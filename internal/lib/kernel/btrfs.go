package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls here have the numbers of amd64 and arm64; elsewhere the kernel knows no such calls.

// SubvolumeID returns the ID of the btrfs subvolume that fd is in.
func SubvolumeID(fd int) (uint64, error) {
	const lookUp = 0xd0009412 // BTRFS_IOC_INO_LOOKUP
	// This is struct btrfs_ioctl_ino_lookup_args; 256 is the top directory of a subvolume.
	arguments := struct {
		tree, object uint64
		name         [4080]byte
	}{object: 256}
	err := IgnoreEINTR(func() error { return ioctl(fd, lookUp, unsafe.Pointer(&arguments)) })
	return arguments.tree, err
}

// volArguments is struct btrfs_ioctl_vol_args_v2.
type volArguments struct {
	fd                 int64
	transaction, flags uint64
	size               uint64
	inherit            unsafe.Pointer
	_                  [2]uint64
	name               [4040]byte
}

// inheritance is struct btrfs_qgroup_inherit with one group.
type inheritance struct {
	flags, groups, refCopies, exclCopies uint64
	limits                               [5]uint64
	group                                uint64
}

const inheritGroups = 1 << 2 // BTRFS_SUBVOL_QGROUP_INHERIT

func newVolArguments(name string, group uint64) (*volArguments, error) {
	arguments := &volArguments{}
	if len(name) >= len(arguments.name) {
		return nil, unix.ENAMETOOLONG
	}
	copy(arguments.name[:], name)
	if group != 0 {
		inherit := &inheritance{groups: 1, group: group}
		arguments.flags |= inheritGroups
		arguments.size, arguments.inherit = uint64(unsafe.Sizeof(*inherit)), unsafe.Pointer(inherit)
	}
	return arguments, nil
}

// MakeSubvolume makes a btrfs subvolume, which counts in a quota group if group is not 0.
func MakeSubvolume(dir int, name string, group uint64) error {
	const create = 0x50009418 // BTRFS_IOC_SUBVOL_CREATE_V2
	arguments, err := newVolArguments(name, group)
	if err != nil {
		return err
	}
	return do("MakeSubvolume", object{dir, name}, func() error { return ioctl(dir, create, unsafe.Pointer(arguments)) })
}

// SnapshotSubvolume makes a subvolume with the content of another one, whose top directory is from.
func SnapshotSubvolume(dir int, name string, from int, readOnly bool, group uint64) error {
	const create = 0x50009417 // BTRFS_IOC_SNAP_CREATE_V2
	arguments, err := newVolArguments(name, group)
	if err != nil {
		return err
	}
	arguments.fd = int64(from)
	if readOnly {
		arguments.flags |= SubvolumeReadOnly
	}
	return do("SnapshotSubvolume", object{dir, name}, func() error { return ioctl(dir, create, unsafe.Pointer(arguments)) })
}

// NestedSubvolume returns the path of a subvolume in the one that fd is in, from the directory fd; empty where there is
// none, and its ID where the path is too long, or gone by now. Of several it is any one. The empty directories of a
// snapshot that stand for such are none. It needs Linux 4.18.
func NestedSubvolume(fd int) (path string, err error) {
	const references, lookUp, most = 0xd000943d, 0xd000943e, 255 // BTRFS_IOC_GET_SUBVOL_ROOTREF, BTRFS_IOC_INO_LOOKUP_USER
	// This is struct btrfs_ioctl_get_subvol_rootref_args.
	var nested struct {
		from  uint64
		found [most]struct{ tree, dir uint64 }
		items uint8
		_     [7]uint8
	}
	err = IgnoreEINTR(func() error { return ioctl(fd, references, unsafe.Pointer(&nested)) })
	if errors.Is(err, unix.EOVERFLOW) { // there are more than that
		err = nil
	}
	if err != nil || nested.items == 0 {
		return "", err
	}
	// This is struct btrfs_ioctl_ino_lookup_user_args.
	one := struct {
		dir, tree uint64
		name      [256]byte
		path      [3824]byte
	}{dir: nested.found[0].dir, tree: nested.found[0].tree}
	if err := IgnoreEINTR(func() error { return ioctl(fd, lookUp, unsafe.Pointer(&one)) }); err != nil {
		return fmt.Sprintf("subvolume %d", one.tree), nil
	}
	return unix.ByteSliceToString(one.path[:]) + unix.ByteSliceToString(one.name[:]), nil
}

// EnableQuotaGroups makes a btrfs count what quota groups use; that it does is no error. simple: a block counts for
// the subvolume that wrote it, and a subvolume that is made in another one is in its groups (Linux 6.7).
func EnableQuotaGroups(fd int, simple bool) error {
	const control, enable, enableSimple = 0xc0109428, 1, 4 // BTRFS_IOC_QUOTA_CTL
	arguments := struct{ command, status uint64 }{command: enable}
	if simple {
		arguments.command = enableSimple
	}
	return do("EnableQuotaGroups", object{dir: fd}, func() error { return ioctl(fd, control, unsafe.Pointer(&arguments)) })
}

// MakeQuotaGroup makes a quota group. The error is EEXIST where there is one.
func MakeQuotaGroup(fd int, group uint64) error {
	const create = 0x4010942a // BTRFS_IOC_QGROUP_CREATE
	arguments := struct{ create, group uint64 }{1, group}
	return do("MakeQuotaGroup", object{dir: fd}, func() error { return ioctl(fd, create, unsafe.Pointer(&arguments)) })
}

// LimitQuotaGroup sets how many bytes a quota group may use; 0 for no limit.
func LimitQuotaGroup(fd int, group, bytes uint64) error {
	const limit, maxReferenced, none = 0x8030942b, 1, ^uint64(0) // BTRFS_IOC_QGROUP_LIMIT, BTRFS_QGROUP_LIMIT_MAX_RFER
	// This is struct btrfs_ioctl_qgroup_limit_args.
	arguments := struct{ group, flags, referenced, exclusive, reservedReferenced, reservedExclusive uint64 }{
		group: group, flags: maxReferenced, referenced: bytes,
	}
	if bytes == 0 {
		arguments.referenced = none
	}
	return do("LimitQuotaGroup", object{dir: fd}, func() error { return ioctl(fd, limit, unsafe.Pointer(&arguments)) })
}

// QuotaGroup is what a quota group of btrfs uses, and its limit: 0 for none.
type QuotaGroup struct{ ID, Used, Limit uint64 }

// The types of items in the tree of quota groups.
const (
	groupInfo  = 242 // BTRFS_QGROUP_INFO_KEY
	groupLimit = 244 // BTRFS_QGROUP_LIMIT_KEY
)

// QuotaGroups returns the quota groups from one ID to another, in order: the first hundred of them at most.
func QuotaGroups(fd int, from, to uint64) ([]QuotaGroup, error) {
	used, err := quotaItems(fd, groupInfo, from, to)
	if err != nil {
		return nil, err
	}
	limits, err := quotaItems(fd, groupLimit, from, to)
	if err != nil {
		return nil, err
	}
	groups := make([]QuotaGroup, 0, len(used))
	limitOf := map[uint64]uint64{}
	for _, item := range limits {
		// struct btrfs_qgroup_limit_item: flags, max_rfer.
		if flags := binary.LittleEndian.Uint64(item.content); flags&1 != 0 {
			limitOf[item.group] = binary.LittleEndian.Uint64(item.content[8:])
		}
	}
	for _, item := range used {
		// struct btrfs_qgroup_info_item: generation, rfer.
		g := QuotaGroup{ID: item.group, Used: binary.LittleEndian.Uint64(item.content[8:])}
		if limit := limitOf[item.group]; limit != ^uint64(0) {
			g.Limit = limit
		}
		groups = append(groups, g)
	}
	return groups, nil
}

type quotaItem struct {
	group   uint64
	content []byte
}

// quotaItems reads items of one type from the tree of quota groups. The items of that tree are in the order of
// their types first.
func quotaItems(fd int, kind uint32, from, to uint64) ([]quotaItem, error) {
	const search, quotaTree, most, header, shortest = 0xd0009411, 8, 128, 32, 16 // BTRFS_IOC_TREE_SEARCH
	// This is struct btrfs_ioctl_search_args.
	arguments := struct {
		tree, minObject, maxObject, minOffset, maxOffset, minTransaction, maxTransaction uint64
		minType, maxType, items, _                                                       uint32
		_                                                                                [4]uint64
		found                                                                            [3992]byte
	}{
		tree: quotaTree, minOffset: from, maxOffset: to, maxTransaction: ^uint64(0), minType: kind, maxType: kind, items: most,
	}
	if err := IgnoreEINTR(func() error { return ioctl(fd, search, unsafe.Pointer(&arguments)) }); err != nil {
		return nil, err
	}
	var items []quotaItem
	rest := arguments.found[:]
	for range arguments.items {
		// struct btrfs_ioctl_search_header: transid, objectid, offset, type, len.
		if len(rest) < header {
			break
		}
		size := int(binary.NativeEndian.Uint32(rest[28:]))
		if len(rest) < header+size {
			break
		}
		if size >= shortest {
			items = append(items, quotaItem{binary.NativeEndian.Uint64(rest[16:]), rest[header : header+size]})
		}
		rest = rest[header+size:]
	}
	return items, nil
}

// BtrfsUUID returns the UUID of the btrfs that fd is on.
func BtrfsUUID(fd int) (uuid [16]byte, err error) {
	const information = 0x8400941f // BTRFS_IOC_FS_INFO
	// This is struct btrfs_ioctl_fs_info_args.
	arguments := struct {
		maxID, devices uint64
		uuid           [16]byte
		_              [992]byte
	}{}
	err = IgnoreEINTR(func() error { return ioctl(fd, information, unsafe.Pointer(&arguments)) })
	return arguments.uuid, err
}
