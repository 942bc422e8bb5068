package store

// Rebooted tells whether the kernel was booted since an earlier process had the store
// open, so that nothing is mounted any more that was mounted then. It is true only for
// the first process in a boot, and only where that is certain: a boot ID of its own,
// as some container managers give to each container, is no boot.
func (s *Store) Rebooted() bool { return s.clock.rebooted }

// isBefore tells whether the look was in an earlier boot than m.
func (l storedLook) isBefore(m moment) bool {
	return m.boot != 0 && l.Boot != m.boot && m.boottime < l.Boottime
}
