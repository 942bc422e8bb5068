package fakedriver

// waste is what a driver keeps that it does not need any more.
type waste struct {
	memory               int64
	descriptors, threads int
	records              int
}

// wasteOfPublish is what it keeps of each publish.
func (d *Driver) wasteOfPublish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.cfg.Bug {
	case LeaksMemory:
		d.waste.memory += 1 << 20
	case LeaksDescriptors:
		d.waste.descriptors++
	case LeaksThreads:
		d.waste.threads++
	}
}

// wasteOfDelete is what it keeps of each volume that is gone.
func (d *Driver) wasteOfDelete() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cfg.Bug == KeepsRecords {
		d.waste.records++
	}
}

// Descriptors is how many files it claims to have open.
func (d *Driver) Descriptors() (n int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return 12 + d.waste.descriptors, d.run != nil
}

// Records is how many volumes it has on record.
func (d *Driver) Records() int {
	d.mu.Lock()
	wasted := d.waste.records
	d.mu.Unlock()
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	return len(d.disk.records) + wasted
}
