package scratch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

// TestDeepDirectoryIsMovedMeanwhile: the way back from what lies deep leads nowhere but to where it
// came from, even if somebody moves a directory to another volume.
func TestDeepDirectoryIsMovedMeanwhile(t *testing.T) {
	eachKernel(t, func(t *testing.T, d *Dir) {
		const depth = 2*maxDepth + 10
		dir, other := create(t, d, here), create(t, d, at(pod, "other"))
		hostile.Deep(t, dir, depth, "d")
		hostile.Deep(t, other, 3, "d")
		// The first batch ends at the bottom.
		fill(t, filepath.Join(dir, strings.Repeat("d/", depth)), 2*paceEvery, 0)
		name, path := discard(t, d, here)
		err := duringErase(d, name, func() {
			must(t, os.Rename(filepath.Join(path, strings.Repeat("d/", maxDepth/2)), filepath.Join(other, "d/d/moved")))
		})
		if !errors.Is(err, beneath.ErrMoved) {
			t.Errorf("Erase: %v, want %v", err, beneath.ErrMoved)
		}
		if !exists(other+"/d/d/d") || !exists(other+"/d/d/file") || !exists(other+"/d/file") || !exists(other+"/file") {
			t.Error("another volume lost a file")
		}
		erase(t, d, name)
	})
}

// TestEraseWithoutItsKey: a pod may encrypt a directory of its own, and take the key away. Nothing
// in there can be moved then.
func TestEraseWithoutItsKey(t *testing.T) {
	roottest.Need(t)
	root := roottest.FileSystem(t, "ext4", 64, "-O", "encrypt")
	d := openAt(t, filepath.Join(root, "work"))
	dir := filepath.Join(create(t, d, here), "secret")
	must(t, os.Mkdir(dir, 0o700))
	removeKey := encrypt(t, root, dir)
	hostile.Deep(t, dir, 3*maxDepth, "d")
	fill(t, dir, 300, 10)
	removeKey()
	name, _ := discard(t, d, here)
	hostile.FewFiles(t, maxDepth+20)
	must(t, d.Erase(context.Background(), name, nil))
	trashIsEmpty(t, d)
}

// encrypt gives an empty directory a key, which is there until the returned function is called.
func encrypt(t *testing.T, root, dir string) (removeKey func()) {
	t.Helper()
	const request = 0xc0506617 // FS_IOC_ADD_ENCRYPTION_KEY
	key := struct {
		unix.FscryptAddKeyArg
		raw [unix.FSCRYPT_MAX_KEY_SIZE]byte
	}{FscryptAddKeyArg: unix.FscryptAddKeyArg{
		Key_spec: unix.FscryptKeySpecifier{Type: unix.FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER}, Raw_size: unix.FSCRYPT_MAX_KEY_SIZE,
	}}
	ioctl := func(path string, request uintptr, argument unsafe.Pointer) {
		t.Helper()
		fd, err := unix.Open(path, beneath.DirectoryFlags, 0)
		must(t, err)
		defer unix.Close(fd)
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); errno != 0 {
			t.Fatalf("ioctl %#x of %s: %v", request, path, errno)
		}
	}
	ioctl(root, request, unsafe.Pointer(&key))
	policy := unix.FscryptPolicyV2{
		Version: unix.FSCRYPT_POLICY_V2, Contents_encryption_mode: unix.FSCRYPT_MODE_AES_256_XTS,
		Filenames_encryption_mode: unix.FSCRYPT_MODE_AES_256_CTS, Flags: unix.FSCRYPT_POLICY_FLAGS_PAD_32,
	}
	copy(policy.Master_key_identifier[:], key.Key_spec.U[:])
	ioctl(dir, unix.FS_IOC_SET_ENCRYPTION_POLICY, unsafe.Pointer(&policy))
	return func() {
		t.Helper()
		remove := unix.FscryptRemoveKeyArg{Key_spec: key.Key_spec}
		ioctl(root, unix.FS_IOC_REMOVE_ENCRYPTION_KEY, unsafe.Pointer(&remove))
		if remove.Removal_status_flags != 0 {
			t.Fatalf("the key is still in use: %#x", remove.Removal_status_flags)
		}
	}
}
