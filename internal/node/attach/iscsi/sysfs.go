package iscsi

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// gone reports whether an error of sysfs means that the object went while it was looked at.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO)
}

// hasNone reports whether an error of sysfs means that a disk has no such page.
func hasNone(err error) bool { return gone(err) || errors.Is(err, unix.EINVAL) }

// attribute reads a line of sysfs. The kernel writes (null) for a text that is not set.
func attribute(path ...string) (string, error) {
	content, err := contents(filepath.Join(path...))
	text := strings.TrimSuffix(string(content), "\n")
	if text == "(null)" {
		text = ""
	}
	return text, err
}

// contents reads a file of sysfs, which is no longer than a page.
func contents(path string) ([]byte, error) {
	return kernel.ReadFile(unix.AT_FDCWD, path, 0, os.Getpagesize())
}

// write writes a word into a file of sysfs. The kernel acts upon it before write returns.
func write(word string, path ...string) error { return kernel.Order(filepath.Join(path...), word) }

// entries is the names in a directory of sysfs; none where there is no such directory.
func entries(path string) (names []string, err error) {
	names, err = kernel.Names(path)
	if gone(err) {
		return nil, nil
	}
	return names, err
}

// numbered returns the number in a name such as session12.
func numbered(name, prefix string) (int, error) {
	digits, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil || digits != strconv.FormatUint(n, 10) {
		return 0, fmt.Errorf("sysfs: %.60q is no %s and a number", name, prefix)
	}
	return int(n), nil
}

// address is what the kernel calls a SCSI device: host:channel:target:LUN.
type address struct{ host, channel, target, lun int }

func parseAddress(name string) (a address, err error) {
	fields := strings.Split(name, ":")
	if len(fields) != 4 {
		return a, fmt.Errorf("sysfs: %.60q is no SCSI address", name)
	}
	for n, into := range []*int{&a.host, &a.channel, &a.target, &a.lun} {
		if *into, err = numbered(fields[n], ""); err != nil {
			return a, fmt.Errorf("sysfs: %.60q is no SCSI address", name)
		}
	}
	return a, nil
}

// parseNumber reads a device's number as sysfs prints it: 8:16.
func parseNumber(text string) (uint64, error) {
	major, minor, _ := strings.Cut(text, ":")
	a, errA := strconv.ParseUint(major, 10, 32)
	b, errB := strconv.ParseUint(minor, 10, 32)
	if err := errors.Join(errA, errB); err != nil {
		return 0, fmt.Errorf("sysfs: %.60q is no number of a device", text)
	}
	return unix.Mkdev(uint32(a), uint32(b)), nil
}

// serialPage is the page of vital product data (VPD) that has a disk's serial number.
const serialPage = 0x80

// parseSerial reads VPD page 0x80 of a disk: four bytes, the third and fourth of which are the
// length of what follows. Arrays fill the serial number up with blanks or zeros.
func parseSerial(page []byte) (string, error) {
	const header = 4
	if len(page) < header || page[1] != serialPage {
		return "", fmt.Errorf("VPD page 0x80 begins with %.16q", page)
	}
	length := int(page[2])<<8 | int(page[3])
	if length > len(page)-header {
		return "", fmt.Errorf("VPD page 0x80 has %d bytes instead of %d", len(page)-header, length)
	}
	serial := bytes.Trim(page[header:header+length], "\x00 ")
	for _, c := range serial {
		if c < ' ' || c > '~' {
			return "", fmt.Errorf("VPD page 0x80 has no printable serial number: %.60q", serial)
		}
	}
	if len(serial) == 0 {
		return "", errors.New("VPD page 0x80 has an empty serial number")
	}
	return string(serial), nil
}
