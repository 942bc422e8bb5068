package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/katbox/katbox/soak/internal/clock"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/launch"
	"github.com/katbox/katbox/soak/internal/workload"
)

// options says what to do.
type options struct {
	daemon string
	// name is that of the workload: a preset's or a file's; source is the flag
	// that names it.
	name     string
	source   string
	workload workload.Workload
	seed     uint64
	dryRun   bool
	dir      string
	keep     bool
	// local: each pod has a local persistent volume, too. locals is what they are made by; nil without.
	local  bool
	locals *locals
	// gateway says which pods have an owner; nil without such pods.
	gateway *kubelet.Gateway
	log     string
	json    string
	report  string
	// tolerance is how long after its deadline data may still be there. It is
	// always the constant, but for tests.
	tolerance time.Duration
	// reaction is how far ahead the driver expects pods to write on as they do; 0 is not at all.
	reaction time.Duration
	// enoughCalls is from how many calls on the checker compares what they cost;
	// 0 stands for its own number.
	enoughCalls int
	// changes are the flags that change the workload, as they were given.
	changes []string
}

// parseOptions reads the command line, and the workload that it names. The error is pflag.ErrHelp, or wraps launch.ErrUsage.
func parseOptions(args []string) (options, error) {
	o := options{tolerance: tolerance, reaction: reaction}
	var preset, file string
	var change workload.Workload
	var volumes, kills int
	flags := launch.Flags("soak")
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, "Usage: soak [flags]\n\n%s\nWorkloads (--preset):\n", flags.FlagUsages())
		for _, name := range workload.Presets() {
			fmt.Fprintf(os.Stderr, "  %-7s %s\n", name, workload.Describe(name))
		}
	}
	flags.StringVar(&o.daemon, "daemon", "", "the katbox binary (default: katbox beside this binary, or katbox-clock for steps of the clock)")
	flags.StringVar(&preset, "preset", "smoke", "the workload, one of "+strings.Join(workload.Presets(), ", "))
	flags.StringVar(&file, "workload", "", "the workload, a YAML file; the presets' files are examples")
	launch.AddSeed(flags, &o.seed, "decides everything random")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only print what each pod and each fault would do")
	flags.StringVar(&o.json, "json", "", "write the result to this file, for machines")
	flags.StringVar(&o.report, "report", "", "write the result to this file, an HTML page with charts")
	flags.StringVar(&o.dir, "dir", "", "an empty or new directory for everything (default: a temporary one)")
	flags.BoolVar(&o.keep, "keep", false, "keep the directory; after a violation it is kept anyway")
	flags.BoolVar(&o.local, "local", false, "each pod also has a persistent volume of a local pool, as root of the machine")
	flags.StringVar(&o.log, "log", "daemon.log", "the daemon's log, a file name inside the directory")
	changes := []struct {
		name  string
		apply func(*workload.Workload)
	}{
		{"pods", func(w *workload.Workload) { w.Pods = change.Pods }},
		{"parallel", func(w *workload.Workload) { w.Parallel = change.Parallel }},
		{"volumes", func(w *workload.Workload) { w.Volumes.Min, w.Volumes.Max = volumes, volumes }},
		{"disk", func(w *workload.Workload) { w.Disk.Kind = change.Disk.Kind }},
		{"lifespan", func(w *workload.Workload) { w.Driver.Lifespan = change.Driver.Lifespan }},
		{"repeat", func(w *workload.Workload) { w.Calls.Doubled = change.Calls.Doubled }},
		{"cancel", func(w *workload.Workload) { w.Calls.Cancelled = change.Calls.Cancelled }},
		{"kills", func(w *workload.Workload) { setKills(w, kills) }},
		{"timeout", func(w *workload.Workload) { w.Timeout = change.Timeout }},
	}
	const instead = " (instead of the workload's)"
	flags.IntVar(&change.Pods, "pods", 0, "how many pods live and die"+instead)
	flags.IntVar(&change.Parallel, "parallel", 0, "how many pods are on the node at a time"+instead)
	flags.IntVar(&volumes, "volumes", 0, "volumes of each pod"+instead)
	flags.StringVar(&change.Disk.Kind, "disk", "", "what the working directory is on, such as ext4"+instead)
	flags.DurationVar((*time.Duration)(&change.Driver.Lifespan), "lifespan", 0, "the daemon's --afterlifespan"+instead)
	flags.Float64Var(&change.Calls.Doubled, "repeat", 0, "share of calls sent twice, half of them at the same time"+instead)
	flags.Float64Var(&change.Calls.Cancelled, "cancel", 0, "share of calls cancelled midway and then repeated"+instead)
	flags.IntVar(&kills, "kills", 0, "how often the daemon is killed and started again"+instead)
	flags.DurationVar((*time.Duration)(&change.Timeout), "timeout", 0, "give up after this time"+instead)
	if err := launch.Parse(flags, args); err != nil {
		return o, err
	}
	switch {
	case file != "" && flags.Changed("preset"):
		return o, fmt.Errorf("%w: --preset and --workload both name the workload; give one of them", launch.ErrUsage)
	case kills < 0:
		return o, fmt.Errorf("%w: --kills is %d, it cannot be negative", launch.ErrUsage, kills)
	case o.log == "" || o.log == "." || o.log == ".." || strings.ContainsRune(o.log, '/'):
		return o, fmt.Errorf("%w: --log is %q, it has to be a plain file name", launch.ErrUsage, o.log)
	}
	var err error
	o.name, o.source = preset, "--preset "+preset
	if file != "" {
		o.name, o.source = file, "--workload "+quoted(file)
		o.workload, err = workload.Read(file)
	} else {
		o.workload, err = workload.Preset(preset)
	}
	if err != nil {
		return o, fmt.Errorf("%w: %w", launch.ErrUsage, err)
	}
	for _, c := range changes {
		if f := flags.Lookup(c.name); f.Changed {
			c.apply(&o.workload)
			o.changes = append(o.changes, fmt.Sprintf("--%s %s", c.name, f.Value))
		}
	}
	if err := o.workload.Check(); err != nil {
		return o, fmt.Errorf("%w: %s with %s: %w", launch.ErrUsage, o.name, strings.Join(o.changes, " "), err)
	}
	if o.local {
		o.changes = append(o.changes, "--local")
	}
	return o, nil
}

// api is the API server of the run.
func (o options) api() *kubelet.API {
	if o.gateway == nil {
		return &kubelet.API{}
	}
	return o.gateway.API
}

// killed is how long a daemon is away that --kills kills.
const killed = workload.Duration(200 * time.Millisecond)

// setKills sets how often the daemon is killed, whatever else goes wrong.
func setKills(w *workload.Workload, times int) {
	var faults []workload.Fault
	for _, f := range w.Faults {
		if f.Kind != workload.DaemonKill {
			faults = append(faults, f)
		}
	}
	if times != 0 {
		faults = append(faults, workload.Fault{Kind: workload.DaemonKill, Times: times, For: killed})
	}
	w.Faults = faults
}

// plan is what the run does.
func (o options) plan() workload.Plan { return workload.NewPlan(o.workload, o.seed) }

// again is the command line that makes the same decisions.
func (o options) again() string {
	return strings.Join(append([]string{"soak", o.source, fmt.Sprintf("--seed %d", o.seed)}, o.changes...), " ")
}

// quoted is a word for a shell.
func quoted(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool { return !strings.ContainsRune(plainLetters, r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// plainLetters mean nothing to a shell.
const plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@%,"

// binary is the absolute path of the daemon's binary: of the one that is shipped, unless the
// workload steps its clock. Its error wraps launch.ErrUsage.
func (o options) binary() (string, error) {
	name, build, steps := "katbox", "make build", hasFault(o.workload, workload.ClockStep)
	if steps {
		name, build = "katbox-clock", "make bin/katbox-clock"
	}
	path, err := launch.Daemon(o.daemon, name, build)
	if err != nil || !steps {
		return path, err
	}
	switch follows, err := clock.Follows(path); {
	case err != nil:
		return "", fmt.Errorf("%w: the daemon: %w; name another with --daemon", launch.ErrUsage, err)
	case !follows:
		return "", fmt.Errorf("%w: the daemon: %s steps the clock, and %s follows the machine's;"+
			" \"make bin/katbox-clock\" builds one to name with --daemon", launch.ErrUsage, o.name, path)
	}
	return path, nil
}
