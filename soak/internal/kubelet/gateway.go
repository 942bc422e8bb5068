package kubelet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/link"
	"github.com/katbox/katbox/soak/internal/workload"
)

// Gateway tells the driver whose the pods are that it asks about, as the API server has them.
type Gateway struct {
	*link.Listener
	// API is the API server that it reads.
	API *API
}

// ListenGateway starts a gateway. It writes what a driver needs to connect into a directory.
func ListenGateway(dir string) (*Gateway, error) {
	g := &Gateway{API: &API{}}
	var err error
	g.Listener, err = link.Listen(dir, g.hear)
	return g, err
}

// Flags are those of a daemon that connects.
func (g *Gateway) Flags() []string { return g.Listener.Flags("gateway") }

// hear answers what a node asks, until the connection has ended. The node asks again for what was not answered.
func (g *Gateway) hear(node *http.ClientConn, summaries io.Reader) {
	lines := json.NewDecoder(summaries)
	for {
		var s api.Summary
		if lines.Decode(&s) != nil || g.answer(node, s.Asks) != nil {
			return
		}
	}
}

// answer tells whose the pods are, except those that are over.
func (g *Gateway) answer(node *http.ClientConn, asks []api.OwnerAsk) error {
	var answers api.OwnerAnswers
	var confirmed []func()
	for _, ask := range asks {
		pod, ok := g.API.Pod(ask.PodUID)
		if !ok {
			continue
		}
		answers.Items = append(answers.Items, api.OwnerAnswer{ID: ask.ID, PodUID: ask.PodUID, Owner: ownerOf(pod.Plan)})
		for _, v := range pod.Volumes {
			if v.Plan.ID == ask.ID && v.Story.Owner != "" {
				confirmed = append(confirmed, v.Story.BeginOwning())
			}
		}
	}
	if len(answers.Items) == 0 {
		return nil
	}
	body, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, "http://node"+api.OwnersPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := node.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var said api.OwnersKept
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || said.Kept != len(answers.Items) {
		return nil // which of them is not known
	}
	for _, end := range confirmed {
		end()
	}
	return nil
}

// ownerOf is what the API server has of the owner of a pod. A CronJob owns the Jobs that it makes, and calls them by the minute that
// they were due.
func ownerOf(pod workload.Pod) api.Owner {
	o := api.Owner{Verdict: "Confirmed", NamespaceUID: "uid-of-" + pod.Namespace, Kind: pod.Owner.Kind, Name: pod.Owner.Name}
	if o.Kind == "CronJob" {
		o.Kind, o.Name = "Job", fmt.Sprintf("%s-%d", o.Name, time.Now().Unix()/60-int64(pod.Index%5))
	}
	if o.Kind != "" {
		o.UID = "uid-of-" + o.Name
	}
	if o.Kind == "Job" {
		o.Job = o.Name
	}
	return o
}
