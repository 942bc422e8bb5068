package attach

import "errors"

// ErrNotOurs: what is there is not what should be: another disk, a device with a file
// system of another kind or with unknown data, or another mount at the path. It was left as it is.
var ErrNotOurs = errors.New("not this volume")
