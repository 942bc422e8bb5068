package unpack

import "os"

// host is Linux, which has every name of a volume.
var host = system{open: openHandle}

// allowHoles is for systems where a file has no holes until that is said.
func allowHoles(*os.File) {}
