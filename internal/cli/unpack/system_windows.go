package unpack

import (
	"os"

	"golang.org/x/sys/windows"
)

// host is Windows.
var host = system{open: openRooted, rules: windowsRules}

// allowHoles makes what is not written of a file a hole. Without it, Windows writes zeros there. A file
// system that has no holes goes on without them.
func allowHoles(f *os.File) {
	var returned uint32
	_ = windows.DeviceIoControl(windows.Handle(f.Fd()), windows.FSCTL_SET_SPARSE, nil, 0, nil, 0, &returned, nil)
}
