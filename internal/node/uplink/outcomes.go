package uplink

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/outcome"
	"github.com/katbox/katbox/internal/model/podend"
	"github.com/katbox/katbox/internal/model/volume"
)

// Outcomes takes in how pods ended.
type Outcomes interface {
	// Take takes in the ending of a pod, and may wait until ctx ends. It returns false if the node does
	// not need it.
	Take(ctx context.Context, e outcome.Ending) (taken bool, err error)
}

// outcomes takes in how pods ended.
func (c *connection) outcomes(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), ownLimit)
	defer cancel()
	read := func(body io.Reader) ([]outcome.Ending, error) {
		return readOutcomes(body, c.u.cfg.Driver, c.u.cfg.Ends)
	}
	endings, ok := receive(ctx, c, w, r, read)
	if !ok {
		return
	}
	var answer api.OutcomesTaken
	for _, e := range endings {
		taken, err := c.u.cfg.Outcomes.Take(ctx, e)
		if err != nil {
			api.WriteError(w, api.NewError(api.TooManyRequests, "the node is busy with the outcomes of other pods; try again"))
			return
		}
		if taken {
			answer.Taken++
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the gateway is gone
}

// podOutcome is an [api.PodOutcome] of a gateway that may lie.
type podOutcome struct {
	PodUID  string          `json:"podUID"`
	Outcome string          `json:"outcome"`
	Volumes bounded[string] `json:"volumes"`
	Drivers bounded[string] `json:"drivers"`
	End     json.RawMessage `json:"end"`
}

// readOutcomes reads and checks the body of a request. Of the volumes it returns those of one CSI driver, or
// all if that is empty; how the pods ended only if that is wanted.
func readOutcomes(body io.Reader, driver string, ends bool) ([]outcome.Ending, error) {
	var all struct {
		Items bounded[podOutcome] `json:"items"`
	}
	if err := json.NewDecoder(body).Decode(&all); err != nil {
		return nil, fmt.Errorf("the body is no list of outcomes: %w", err)
	}
	endings := make([]outcome.Ending, 0, len(all.Items))
	for i, item := range all.Items {
		e, err := readOutcome(item, driver)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		if ends {
			e.End = readEnd(item)
		}
		endings = append(endings, e)
	}
	return endings, nil
}

func readOutcome(item podOutcome, driver string) (e outcome.Ending, err error) {
	if e.Pod, err = volume.ParsePodUID("podUID", item.PodUID); err != nil {
		return e, err
	}
	var ok bool
	if e.Outcome, ok = volume.ParseOutcome(item.Outcome); !ok || e.Outcome == volume.OutcomeUnknown {
		return e, volume.Invalid("outcome", fmt.Sprintf("is %q, which is neither Succeeded nor Failed nor Stopped", item.Outcome))
	}
	if len(item.Volumes) > outcome.MostVolumes {
		return e, volume.Invalid("volumes", fmt.Sprintf("are more than %d", outcome.MostVolumes))
	}
	said := len(item.Drivers) > 0
	if said && len(item.Drivers) != len(item.Volumes) {
		return e, volume.Invalid("drivers", "are not as many as the volumes")
	}
	for i, name := range item.Volumes {
		if name == "" || volume.ObjectName(name) != name {
			return e, volume.Invalid("volumes", fmt.Sprintf("has %.100q, which cannot be the name of a volume", name))
		}
		if !said || driver == "" || item.Drivers[i] == driver {
			e.Volumes = append(e.Volumes, name)
		}
	}
	return e, nil
}

// readEnd reads how a pod ended. The outcome counts, also where that is of another pod, or cannot be read.
func readEnd(item podOutcome) []byte {
	end, err := podend.Decode(item.End)
	if err != nil || end.UID != item.PodUID {
		return nil
	}
	return end.Encode()
}
