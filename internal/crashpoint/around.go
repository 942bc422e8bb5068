package crashpoint

import "github.com/katbox/katbox/internal/kernel"

// Around calls effect, which is one change that a crash cannot cut in two. name
// is a constant, used once, that says what changes.
func Around(name string, effect func() error) error { return kernel.Around(name, effect) }
