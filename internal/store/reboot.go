package store

// Rebooted tells whether the kernel was booted since an earlier process had the store
// open, so that nothing is mounted any more that was mounted then. It is true only
// where that is certain: a boot ID of its own, as some container managers give to each
// container, is no boot. It stays true, for later processes too, until [Store.RebootSeen]:
// one that ends before has not recorded what follows.
func (s *Store) Rebooted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rebooted
}

// RebootSeen notes that what follows from a reboot is recorded.
func (s *Store) RebootSeen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.rebooted {
		return nil
	}
	s.rebooted = false
	return s.write(func(transaction) error { return nil })
}

// noteReboot has the file say what Rebooted does. It is part of the transaction that
// notes the clocks, which the next process tells a reboot by.
func (s *Store) noteReboot(t transaction) error {
	switch {
	case s.rebooted && !s.noted:
		return t.put(metaBucket, rebootedKey, []byte{1})
	case !s.rebooted && s.noted:
		return t.delete(metaBucket, rebootedKey)
	}
	return nil
}

// isBefore tells whether the look was in an earlier boot than m. A machine that has
// been up for longer than it had been then is taken for one that was not booted.
func (l storedLook) isBefore(m moment) bool {
	return m.boot != 0 && l.Boot != m.boot && m.boottime < l.Boottime
}
