package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

const (
	// debugMount is where the pod has the volume, debugContainer the name of its container.
	debugMount     = "/data"
	debugContainer = "debug"
	// debugLooks is how many entries of the volume are looked at for the user that wrote.
	debugLooks = 100
	// debugPause is how long it takes until the pod is looked at again.
	debugPause = time.Second
	// mostDebug is the longest time that the pod may run.
	mostDebug = 7 * 24 * time.Hour
)

// debugOptions are the flags of debug.
type debugOptions struct {
	image, driver, user, length, wait, dryRun, output string
}

func (o *debugOptions) define(flags *pflag.FlagSet) {
	flags.StringVar(&o.image, "image", "busybox:1.37", "image of the pod; it needs the command sleep")
	flags.StringVar(&o.user, "run-as", "", "UID or UID:GID of the pod; else that of the files at the top of the volume")
	flags.StringVar(&o.length, "for", "1h", "how long the pod runs at most")
	flags.StringVar(&o.wait, "wait", "2m", "how long to wait for the pod to run")
	flags.StringVar(&o.driver, "driver", api.DriverName,
		"name of the CSI driver, if the cluster's Katbox has another one (--drivername)")
	flags.StringVar(&o.dryRun, "dry-run", "none", "client: show the pod and make none")
	flags.StringVarP(&o.output, "output", "o", "yaml", "with --dry-run=client: yaml or json")
}

func debugVerb(conn *connection) *cobra.Command {
	var c choice
	var o debugOptions
	verb := &cobra.Command{
		Use:               "debug TARGET",
		Short:             "makes a pod that has a retained volume read-only, for a shell",
		Args:              verbs.Arguments(1, 1),
		ValidArgsFunction: conn.targets(volumesAlone, 1),
		Long: `The pod runs on the volume's node, as the user that wrote the files, and has them at ` + debugMount + `. Nothing
removes it before its time is over; while it runs the volume stays.`,
		Example: `  kubectl katbox debug nightly-29000000-x7k2p                   then: kubectl exec -it katbox-debug-... -- sh
  kubectl katbox debug --last job/nightly --image=debian:13 --for 4h
  kubectl katbox debug nightly-29000000-x7k2p --dry-run=client > pod.yaml`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error { return s.debug(ctx, &c, &o, args[0]) }),
	}
	c.define(verb.Flags())
	o.define(verb.Flags())
	completeFlag(verb, "output", oneOf(outputYAML, outputJSON))
	completeFlag(verb, "dry-run", oneOf("none", "client"))
	return verb
}

// debug makes the pod and waits until it runs.
func (s *session) debug(ctx context.Context, c *choice, o *debugOptions, text string) error {
	t, err := wholeTarget(text, "mounted")
	if err != nil {
		return err
	}
	length, wait, err := o.check()
	if err != nil {
		return err
	}
	v, err := c.one(ctx, s, t)
	if err != nil {
		return err
	}
	if v.Spec.PoolName != "" {
		return fmt.Errorf("%s is on a remote array, where no pod can name it: %s ls %s says how a claim gets it back",
			describe(v), s.Program, v.Name)
	}
	if v.Spec.PodUID == "" || v.Spec.VolumeName == "" {
		return fmt.Errorf("the pod of %s is not known, so no other pod can name the volume: copy its files with %s cp", describe(v), s.Program)
	}
	user, err := s.writer(ctx, v, o.user)
	if err != nil {
		return err
	}
	pod := o.pod(v, user, length)
	if o.dryRun == "client" {
		return s.showPod(pod, o.output)
	}
	made, err := s.client.CreatePod(ctx, pod)
	if err != nil {
		return s.refused(ctx, v, user, err)
	}
	fmt.Fprintf(s.Stderr, "made pod %s\n", made.Metadata.Name)
	if err := s.awaitPod(ctx, made, wait); err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "kubectl exec -it -n %[1]s %[2]s -- sh\nkubectl delete pod -n %[1]s %[2]s\n", v.Namespace, made.Metadata.Name)
	fmt.Fprintf(s.Stderr, "it has %s at %s, read-only, until it is deleted or for %s\n",
		terminal.Clean(describe(v)), debugMount, duration.Format(length))
	return nil
}

// refused says why a pod was not made, and what the user can do.
func (s *session) refused(ctx context.Context, v resource.RetainedVolume, user podUser, err error) error {
	found, profile, why := false, "", ""
	if said := (*api.Error)(nil); errors.As(err, &said) {
		// The API server's admission of pods says so in every version.
		_, why, found = strings.Cut(said.Message, `violates PodSecurity "`)
		profile, why, _ = strings.Cut(why, `": `)
	}
	switch {
	case !found:
		return fmt.Errorf("make a pod in namespace %s: %w", v.Namespace, s.client.Explain(ctx, "", err))
	case user.uid == 0:
		return fmt.Errorf("root wrote the files, and the namespace %s takes no pod that runs as root (PodSecurity %s): "+
			"give --run-as 65534:65534 for a pod that sees what all users may read, or copy the files without a pod: %s cp %s DEST",
			v.Namespace, profile, s.Program, v.Name)
	}
	return fmt.Errorf("the namespace %s does not take the pod (PodSecurity %s): %s; copy the files without a pod: %s cp %s DEST",
		v.Namespace, profile, why, s.Program, v.Name)
}

// check checks the flags that need no cluster.
func (o *debugOptions) check() (length, wait time.Duration, err error) {
	if length, err = duration.Parse(o.length); err != nil || length < time.Second || length > mostDebug {
		return 0, 0, verbs.WrongUsage("--for %s is not a time from 1s to %s, such as 4h", verbs.Quoted(o.length), duration.Format(mostDebug))
	}
	if wait, err = duration.Parse(o.wait); err != nil || wait <= 0 {
		return 0, 0, verbs.WrongUsage("--wait %s is not a time, such as 2m", verbs.Quoted(o.wait))
	}
	switch {
	case o.dryRun != "none" && o.dryRun != "client":
		return 0, 0, verbs.WrongUsage("--dry-run %s is neither none nor client", verbs.Quoted(o.dryRun))
	case o.output != outputYAML && o.output != outputJSON:
		return 0, 0, verbs.WrongUsage("--output %s is neither yaml nor json", verbs.Quoted(o.output))
	case o.image == "":
		return 0, 0, verbs.WrongUsage("--image is empty")
	}
	if o.user != "" {
		_, err = parseUser(o.user)
	}
	return length, wait, err
}

// podUser is the user that a pod runs as.
type podUser struct{ uid, gid uint32 }

// parseUser reads UID or UID:GID. Without a group it is that of the same number.
func parseUser(text string) (podUser, error) {
	first, second, two := strings.Cut(text, ":")
	uid, err := strconv.ParseUint(first, 10, 31)
	gid := uid
	if two && err == nil {
		gid, err = strconv.ParseUint(second, 10, 31)
	}
	if err != nil {
		return podUser{}, verbs.WrongUsage("--run-as %s is not UID or UID:GID, such as 1000:1000", verbs.Quoted(text))
	}
	return podUser{uint32(uid), uint32(gid)}, nil
}

// writer returns the user that wrote the files of a volume: the owner of the first one at its top that is
// not root's. The volume's top itself is the daemon's.
func (s *session) writer(ctx context.Context, v resource.RetainedVolume, given string) (podUser, error) {
	if given != "" {
		return parseUser(given)
	}
	list, err := s.client.Files(ctx, cluster.ID(v.Namespace, v.Name), api.FilesQuery{Limit: debugLooks})
	if err != nil {
		err = s.client.Explain(ctx, cluster.ID(v.Namespace, v.Name), err)
		return podUser{}, fmt.Errorf("find out which user wrote the files of %s (--run-as gives it): %w", describe(v), err)
	}
	user := podUser{}
	for _, e := range list.Entries {
		if e.UID != 0 && e.UID <= 1<<31-1 && e.GID <= 1<<31-1 {
			user = podUser{e.UID, e.GID}
			break
		}
	}
	return user, nil
}

// pod returns the pod that has the volume. It meets the restricted profile unless root wrote the files.
func (o *debugOptions) pod(v resource.RetainedVolume, user podUser, length time.Duration) cluster.Pod {
	seconds := int64(length / time.Second)
	return cluster.Pod{
		APIVersion: "v1", Kind: "Pod",
		Metadata: cluster.PodMetadata{
			GenerateName: "katbox-debug-", Namespace: v.Namespace,
			Labels:      map[string]string{"app.kubernetes.io/name": "katbox-debug"},
			Annotations: map[string]string{"katbox.io/retained-volume": v.Name},
		},
		Spec: map[string]any{
			// As the pods of a DaemonSet: the scheduler still looks whether the node has room.
			"affinity": map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
				"nodeSelectorTerms": []any{map[string]any{"matchFields": []any{
					map[string]any{"key": "metadata.name", "operator": "In", "values": []any{v.Spec.NodeName}},
				}}},
			}}},
			// The pod that wrote the files tolerated what the node has.
			"tolerations":                   []any{map[string]any{"operator": "Exists", "effect": "NoSchedule"}},
			"restartPolicy":                 "Never",
			"activeDeadlineSeconds":         seconds,
			"terminationGracePeriodSeconds": 1,
			"automountServiceAccountToken":  false,
			"securityContext": map[string]any{
				"runAsUser": user.uid, "runAsGroup": user.gid, "runAsNonRoot": user.uid != 0,
				"seccompProfile": map[string]any{"type": "RuntimeDefault"},
			},
			"containers": []any{map[string]any{
				"name": debugContainer, "image": o.image, "command": []any{"sleep", strconv.FormatInt(seconds, 10)}, "workingDir": debugMount,
				"securityContext": map[string]any{
					"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}},
				},
				"volumeMounts": []any{map[string]any{"name": "retained", "mountPath": debugMount, "readOnly": true}},
			}},
			"volumes": []any{map[string]any{"name": "retained", "csi": map[string]any{
				"driver": o.driver, "readOnly": true,
				"volumeAttributes": map[string]any{api.KeyAttach: v.Spec.PodUID + "/" + v.Spec.VolumeName},
			}}},
		},
	}
}

func (s *session) showPod(p cluster.Pod, output string) error {
	if output == outputJSON {
		return s.WriteJSON(p)
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	_, err = s.Stdout.Write(text)
	return err
}

// awaitPod waits until a pod runs. The pod stays if it does not.
func (s *session) awaitPod(ctx context.Context, p cluster.Pod, wait time.Duration) error {
	namespace, name := p.Metadata.Namespace, p.Metadata.Name
	stays := fmt.Sprintf("see kubectl describe pod -n %[1]s %[2]s; kubectl delete pod -n %[1]s %[2]s removes it", namespace, name)
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		now, err := s.client.Pod(waiting, namespace, name)
		switch {
		case err == nil && now.Runs():
			return nil
		case err == nil && now.Ended():
			return fmt.Errorf("pod %s has ended, %s: %s", name, terminal.Clean(now.Why()), stays)
		case err != nil && waiting.Err() == nil:
			return fmt.Errorf("%w; the pod is there: %s", s.client.Explain(ctx, "", err), stays)
		case err == nil:
			p = now
		}
		if retry.Pause(waiting, debugPause) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("pod %s is there, and was not waited for: %s: %w", name, stays, ctx.Err())
	}
	why, err := s.client.PodWarning(ctx, p)
	if err != nil || why == "" {
		why = p.Why()
	}
	if why != "" {
		why = " (" + terminal.Clean(why) + ")"
	}
	return fmt.Errorf("pod %s does not run after %s%s: %s", name, duration.Format(wait), why, stays)
}
