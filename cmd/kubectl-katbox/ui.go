package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/plugin/cluster"
	"github.com/katbox/katbox/internal/plugin/web"
	"github.com/katbox/katbox/internal/plugin/web/browser"
)

func uiVerb(conn *connection) *cobra.Command {
	var c choice
	var port int
	var silent bool
	verb := &cobra.Command{
		Use:               "ui [TARGET[:PATH]]",
		Short:             "shows volumes and their files in the browser",
		Args:              verbs.Arguments(0, 1),
		ValidArgsFunction: conn.targets(pathsToo, 1),
		Long: `The page comes from this machine and is for one browser. It may do what you may do with retained volumes, and nothing else.
It ends with Ctrl-C, or when it was not used for 30 minutes.`,
		Example: `  kubectl katbox ui                                   the volumes of the namespace
  kubectl katbox ui job/nightly                       those of a Job
  kubectl katbox ui job/nightly:out/log.txt --last    a file of the Job's last pod
  kubectl katbox ui --port 8400 --no-browser          print the address; ports 8400 and 8401 may be forwarded by ssh`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
			target, err := s.uiTarget(ctx, &c, args)
			if err != nil {
				return err
			}
			return s.ui(ctx, target, port, silent)
		}),
	}
	c.define(verb.Flags())
	verb.Flags().IntVar(&port, "port", 0, "the port of the page; the next one is for images and downloads. 0 takes any two")
	verb.Flags().BoolVar(&silent, "no-browser", false, "print the address, and start no browser")
	return verb
}

// uiTarget returns what the page shows first. What the page could show only as an error is one here.
func (s *session) uiTarget(ctx context.Context, c *choice, args []string) (*web.Target, error) {
	if len(args) == 0 {
		_, err := s.eachPage(ctx, cluster.Query{Namespace: s.namespace, Limit: 1}, func(cluster.Page) error { return cluster.ErrEnough })
		if verbs.HasCode(err, http.StatusForbidden) {
			return nil, nil // another namespace may be chosen on the page
		}
		return nil, err
	}
	t, err := parseTarget(args[0])
	if err != nil {
		return nil, err
	}
	if t.hasPath {
		v, err := c.one(ctx, s, t)
		return &web.Target{Namespace: v.Namespace, Name: v.Name, Path: t.path}, err
	}
	found, _, incomplete, err := c.matches(ctx, s, t, 2)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, c.nothing(ctx, s, t, incomplete)
	case len(found) == 1:
		v, err := c.orLogs(ctx, s, t, found[0])
		return &web.Target{Namespace: v.Namespace, Name: v.Name}, err
	}
	search := t.pod
	if t.job != "" || t.owner != "" {
		search = t.String()
	}
	return &web.Target{Namespace: cmp.Or(s.namespace, web.Everywhere), Search: search}, nil
}

// orLogs returns the logs of a pod that failed instead of the volume of it that a target means, if they are kept and the
// volume was not named: the page opens where it says why.
func (c *choice) orLogs(ctx context.Context, s *session, t target, v resource.RetainedVolume) (resource.RetainedVolume, error) {
	if v.Status.Outcome != volume.Failed.String() || v.Spec.PodUID == "" || t.volume != "" || c.volume != "" {
		return v, nil
	}
	_, err := s.eachPage(ctx, ofPod(&v), func(page cluster.Page) error {
		for i := range page.Items {
			if page.Items[i].Spec.VolumeName == volume.LogsName {
				v = page.Items[i]
			}
		}
		return nil
	})
	return v, err
}

// ui serves the page until the user ends it.
func (s *session) ui(ctx context.Context, target *web.Target, port int, silent bool) error {
	var mu sync.Mutex
	// The page can do without the name.
	user, _ := s.client.User(ctx)
	server, err := web.New(web.Config{
		Forward: s.client.Forward(), Namespace: s.client.Namespace(), AllNamespaces: s.namespace == "", User: user, Target: target,
		Version: version, Port: port, Flags: s.connection.spoken(), Namespaces: s.namespaces,
		Report: func(problem string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(s.Stderr, "Warning: %s\n", terminal.Clean(problem))
		},
	})
	if err != nil {
		return err
	}
	remove := s.show(server, silent)
	defer remove()
	// The browser has read its file when it comes.
	go func() {
		select {
		case <-server.Opened():
			remove()
		case <-ctx.Done():
		}
	}()
	err = server.Run(ctx)
	if errors.Is(err, web.ErrIdle) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(s.Stderr, "The page has ended: it was not used for 30 minutes. Start it again with %s ui.\n", s.Program)
		return nil
	}
	return err
}

// show opens the page in a browser, or says how to open it. The function that it returns removes what the
// browser needs for that.
func (s *session) show(server *web.Server, silent bool) (remove func()) {
	remove, err := func() {}, error(nil)
	if !silent {
		remove, err = browser.Open(server.URL())
	}
	switch {
	case silent || errors.Is(err, browser.ErrNoDisplay):
		fmt.Fprintln(s.Stderr, "Open this address in a browser. It works once:")
	case err != nil:
		fmt.Fprintf(s.Stderr, "Warning: no browser was started: %s\nOpen this address. It works once:\n", terminal.Clean(err.Error()))
	default:
		fmt.Fprintln(s.Stderr, "The page opens in the browser. If it does not, open this address. It works once:")
	}
	// Nothing else is on stdout, for programs that start this one.
	fmt.Fprintln(s.Stdout, server.URL())
	if !browser.Display() {
		page, raw := server.Ports()
		fmt.Fprintf(s.Stderr, "There is no display here. If your browser is on another machine, run this there first:\n"+
			"  ssh -L %[1]s:127.0.0.1:%[1]s -L %[2]s:127.0.0.1:%[2]s %[3]s\n", page, raw, hostName())
	}
	fmt.Fprintln(s.Stderr, "Ctrl-C ends the page.")
	return remove
}

// hostName is how this machine may be called elsewhere.
func hostName() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "HOST"
}
