package main

import "github.com/katbox/katbox/internal/node/quota"

func checkQuota(mode string) error {
	_, err := quota.ParseMode(mode)
	return err
}

func checkIDs(ids string) error {
	_, err := quota.ParseRange(ids)
	return err
}

// projects returns what gives volumes project quotas.
func (i *instance) projects() (*quota.Projects, error) {
	ids, err := quota.ParseRange(i.o.projectIDs)
	if err != nil {
		return nil, err
	}
	reserved, err := quota.Reserved("/etc")
	if err != nil {
		return nil, err
	}
	return quota.New(quota.Config{Kernel: i.dir.Quotas(), Mode: quota.Mode(i.o.quota), IDs: ids, Reserved: reserved,
		Metrics: i.counted, LimitChanged: i.counted.LimitChanged, Log: i.log}), nil
}
