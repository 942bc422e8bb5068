package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/katbox/katbox/soak/internal/pause"
)

const (
	// firstPort is where the first daemon tells its metrics; each other one has the next.
	firstPort = 19800
	// durableMetric is the age of the oldest record that was answered and is not on the disk.
	durableMetric = "katbox_records_durable_seconds"
	// durablePause is between two questions for it.
	durablePause = 50 * time.Millisecond
)

var errNoMetric = errors.New("the daemon does not tell " + durableMetric)

// durable returns once all that the daemon has answered until then is on the disk. Until that a power cut may take it
// back, so that it is reported outside of the machine only then.
func (n *node) durable(ctx context.Context, then time.Time) error {
	return pause.Until(ctx, durablePause, func() (bool, error) {
		asked := time.Now()
		age, err := n.notDurable(ctx)
		return err != nil || age == 0 || asked.Add(-age).After(then), err
	})
}

// notDurable asks the daemon.
func (n *node) notDurable(ctx context.Context) (time.Duration, error) {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, "http://"+n.metrics+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("metrics of node %s: %w", n.name, err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), durableMetric+" "); ok {
			seconds, err := strconv.ParseFloat(value, 64)
			return time.Duration(seconds * float64(time.Second)), err
		}
	}
	return 0, errNoMetric
}
