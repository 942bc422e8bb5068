package main

// A kind of messages has the same cause and the same cure. What is special in one, the message itself says.
type kind struct {
	title, met, cause, cure string
	// from are the directories and files whose messages they are. The longest one that fits a file counts.
	from []string
}

// kinds are in the order of the page: what a pod's user meets first, then administrators, then claims.
var kinds = []kind{
	{
		title: "Attributes of a volume", met: "in the pod's events, and with the admission policy at `kubectl apply`",
		cause: "The pod's spec has an attribute that Katbox does not know, a value that is malformed, or one beyond what the " +
			"administrator allows.",
		cure: "Correct `volumeAttributes` in the pod's spec; [For users](users.md#attributes) has all of them. Bounds of a namespace " +
			"are in the [policy file](settings.md#by-namespace).",
		from: []string{"internal/node/policy", "internal/model/duration", "internal/lib/nearest"},
	},
	{
		title: "The request of the kubelet", met: "in the pod's events",
		cause: "The pod asks for something that inline volumes do not have, such as a mount option; or the daemon has another " +
			"kubelet's directory.",
		cure: "Ask for what [a pod gets](users.md#what-a-pod-gets). If a path is refused, compare `--kubelet-dir` with the kubelet's " +
			"`--root-dir`.",
		from: []string{"internal/node/csi/inline", "internal/lib/edge", "internal/model/volume"},
	},
	{
		title: "A volume is not published", met: "in the events of a pod that stays ContainerCreating",
		cause: "The volume is in another state than the call expects, its disk or its directory does not answer, or something that is " +
			"not Katbox' is at its path.",
		cure: "Most of these go by themselves: the kubelet tries again. Where the message names a path, unmount or remove what is " +
			"there. The daemon's log has the whole story.",
		from: []string{"actors/ephemeral"},
	},
	{
		title: "A volume is not attached to a pod", met: "in the events of a pod with the attribute `attach`",
		cause: "The volume is not retained on this node, is of another namespace, or another pod has it; as much is attached as may be; or the " +
			"gateway does not say whether the pod is of the namespace that it has confirmed the volume to be of.",
		cure: "See [Look at a retained volume from a pod](users.md#look-at-a-retained-volume-from-a-pod): pod UID, volume name, node " +
			"and namespace have to be right, and one pod at a time has it. [Pins](retention.md#pins-releases-and-purges) has the " +
			"bounds. The kubelet tries again by itself.",
		from: []string{"actors/ephemeral/attach.go", "actors/ephemeral/attachbounds.go", "actors/ephemeral/attachtenant.go"},
	},
	{
		title: "A pod stays Terminating", met: "in the pod's events, and in the daemon's log",
		cause: "A process still uses the volume's mount, something else is mounted there, or the outcome cannot be recorded because " +
			"the disk is full.",
		cure: "End the process that the message names, or unmount what is there. Katbox tries again by itself. See [Not " +
			"unmounted](troubleshooting.md#not-unmounted).",
		from: []string{"actors/ephemeral/unpublish.go", "actors/ephemeral/task.go", "internal/node/mount", "internal/lib/kernel"},
	},
	{
		title: "Limits of volumes", met: "in the pod's events, and in the daemon's log",
		cause: "The working directory's file system cannot enforce a limit, or no project ID is free.",
		cure:  "[Limits of volumes](limits.md#limits-of-volumes) says what the file system needs. `--quota=auto` publishes without a limit.",
		from:  []string{"internal/node/quota", "actors/ephemeral/quota.go", "cmd/katbox/quota.go"},
	},
	{
		title: "Waiting and busy", met: "in events, and by any verb",
		cause: "Another operation on the same object runs, the disk is slow or does not answer, or the program starts or stops.",
		cure: "Wait: the same call is tried again, and gets the outcome. If that goes on for minutes, look at the disk: the kernel's " +
			"log of the node.",
		from: []string{"actors", "internal/lib/pace", "messages"},
	},
	{
		title: "Pins, releases and purges", met: "by `katbox`, `kubectl katbox` and the gateway's API",
		cause: "The volume is not retained any more, or the decision is beyond what the administrator allows.",
		cure:  "List it again. `--max-pin` and `--max-pinned` of the daemon bound pins: [more](retention.md#pins-releases-and-purges).",
		from: []string{
			"actors/ephemeral/hold.go", "actors/ephemeral/pins.go", "actors/ephemeral/purge.go", "actors/ephemeral/owner.go",
			"actors/ephemeral/audit.go",
			"actors/ephemeral/outcome.go", "internal/model/volume/hold.go", "internal/model/volume/owner.go",
			"internal/model/volume/terms.go", "internal/model/outcome",
		},
	},
	{
		title: "A retained volume is not read", met: "by `katbox`, `kubectl katbox` and the gateway's API",
		cause: "The volume was deleted or published meanwhile, the path is none in it, or what is there is neither a regular file nor " +
			"a directory.",
		cure: "List the directory above. While a pod uses the volume, read it with `kubectl exec`. If it is gone, `list --gone` says why.",
		from: []string{
			"actors/ephemeral/leases.go", "actors/ephemeral/reading.go", "actors/ephemeral/reader.go", "internal/node/files", "internal/lib/paths",
			"internal/model/podend", "internal/node/tarball", "internal/node/search", "internal/lib/grep", "internal/lib/patterns",
			"internal/model/asked",
			"internal/node/beneath", "internal/lib/sparse", "internal/model/api", "internal/node/handlers",
		},
	},
	{
		title: "The archive", met: "in the logs of the daemon and of the gateway, and by the verbs that read a volume whose phase is Archived",
		cause: "The bucket does not answer or refuses, a volume is not one that can be archived, or something else than a daemon has written " +
			"to the bucket.",
		cure: "[The archive](archive.md) says what the bucket has to allow. What failed is tried again by itself. An object that is " +
			"damaged is not: the volume is lost, unless its node still has it.",
		from: []string{"internal/gateway/nodehold", "internal/gateway/bucket", "internal/gateway/archived", "internal/gateway/uploads",
			"internal/model/archived", "internal/node/archiver"},
	},
	{
		title: "A flag of the daemon", met: "as the last line of the daemon, which `kubectl -n katbox describe pod` shows",
		cause: "A flag has a value that cannot be, or two flags contradict one another.",
		cure:  "Correct it: in the chart's values, or in the DaemonSet's `args`. [Flags and metrics](reference.md#the-daemon) explains each.",
		from: []string{
			"cmd/katbox", "internal/model/lifespan", "internal/node/quota/range.go", "internal/node/tracing", "internal/lib/logging",
			"internal/lib/ops",
			"internal/model/terminal",
		},
	},
	{
		title: "The working directory", met: "as the last line of the daemon",
		cause: "The working directory is not one that Katbox may use: it has files of others, lies over the kubelet's pods, or was " +
			"covered or moved while the daemon ran.",
		cure: "Give Katbox a directory of its own (`workdir.hostPath`), or undo what was mounted over it. [The " +
			"daemon](reference.md#the-daemon) says why.",
		from: []string{"cmd/katbox/workdir.go", "internal/node/scratch"},
	},
	{
		title: "The records", met: "as the last line of the daemon, or in its log",
		cause: "The file of the records is damaged, of a newer version, or another daemon has it open.",
		cure: "Stop the other daemon, or start the newer version again. A damaged file is moved aside: nothing is deleted then, and " +
			"what has no record is kept for a full lifespan.",
		from: []string{"internal/node/store", "internal/node/store/boltfile", "internal/node/attach/staged", "internal/node/retained"},
	},
	{
		title: "The sockets, and the kubelet", met: "as the last line of the daemon, in its log, or by `/readyz`",
		cause: "Another process serves the socket, or the directories of the container are not the kubelet's.",
		cure: "Stop the other driver on this node; compare the paths with the kubelet's root directory. See [Not " +
			"ready](troubleshooting.md#not-ready).",
		from: []string{"internal/lib/socket", "internal/lib/kubelet", "internal/node/podsapi"},
	},
	{
		title: "The policy file", met: "in the daemon's log and by `/readyz`",
		cause: "The file of `--policy-file` is not what [By namespace](settings.md#by-namespace) describes.",
		cure:  "Correct it. The daemon reads it again by itself; the last good one holds until then.",
		from:  []string{"internal/node/policy/file.go", "internal/node/policy/bounds.go", "cmd/katbox/policy.go"},
	},
	{
		title: "katbox on a node", met: "by `/katbox` in the daemon's container",
		cause: "The command line is wrong, no volume fits it, or no daemon answers.",
		cure: "The message says what to type; `katbox VERB --help` has the flags. See [Find the files on a " +
			"node](node.md).",
		from: []string{"cmd/katbox/verbs", "internal/cli/verbs"},
	},
	{
		title: "kubectl katbox", met: "by the plugin, on your machine",
		cause: "The command line is wrong, no volume fits it, the cluster does not answer, or you lack a right.",
		cure:  "The message says what to type or which right is missing; `kubectl katbox check` looks at the rest. See [For users](users.md).",
		from:  []string{"cmd/kubectl-katbox", "internal/plugin/cluster", "internal/model/sealed"},
	},
	{
		title: "Copies, and the page", met: "by `kubectl katbox cp` and `kubectl katbox ui`",
		cause: "Your disk cannot have a name that a pod gave, something is in the way of a copy, or the page was opened otherwise than " +
			"by the command.",
		cure: "Choose another directory, or take `--tar`; open the page with the URL that the command prints.",
		from: []string{"internal/cli/unpack", "internal/plugin/web", "internal/plugin/web/browser", "internal/plugin/web/page"},
	},
	{
		title: "The gateway's API", met: "by `kubectl get rv` and programs, as the message of a Status",
		cause: "The request is malformed, more is asked for than the gateway does at a time, or a node does not answer.",
		cure:  "Correct the request, as [the gateway](gateway.md) has it, or try again. A list names the nodes that are missing in it.",
		from: []string{
			"internal/gateway/server", "internal/gateway/fleet", "internal/model/resource", "internal/gateway/trust", "internal/gateway/owners",
			"internal/gateway/arrays", "internal/gateway/outcomes", "internal/gateway/podevents",
		},
	},
	{
		title: "A node does not connect to the gateway or the controller", met: "in the logs of the daemon, the gateway and the controller",
		cause: "The other end is not there, a certificate or a token is not that of this cluster, or the daemon runs with another " +
			"name, namespace or ServiceAccount.",
		cure: "The message names the flag or the object. Apply the manifests of one version to all three, and look whether a " +
			"NetworkPolicy or the DNS keeps the node away.",
		from: []string{
			"internal/node/uplink", "internal/link/hub", "internal/link/replicas", "internal/link/satoken", "internal/link/certs",
			"internal/link/wire",
			"cmd/katbox/gateway.go", "cmd/katbox/controller.go",
		},
	},
	{
		title: "The gateway or the controller ends, or is not ready", met: "as the last line of the program, or by `/readyz`",
		cause: "A flag is wrong, the API server does not answer, or a right is missing.",
		cure: "Correct the flag; apply the manifests again. [The gateway](reference.md#the-gateway) and [the " +
			"controller](reference.md#the-controller) have the flags.",
		from: []string{"cmd/katbox-gateway", "cmd/katbox-controller", "internal/lib/program"},
	},
	{
		title: "A claim is refused, or finds no pool", met: "in the claim's events, which the provisioner writes",
		cause: "The StorageClass or the claim asks for what its pools do not have, or no pool has room.",
		cure: "Correct the StorageClass: [its parameters](pools.md#rules-for-pools-and-classes). For room delete volumes, or add a " +
			"pool; `kubectl get vpsa` shows them.",
		from: []string{
			"internal/controller/csi", "internal/model/pools", "actors/pools/classes/reserve.go", "actors/pools/classes/candidates.go",
			"actors/pools/rules/kinds.go", "actors/pools/tasks/create.go", "actors/pools/tasks/compare.go", "actors/pools/tasks/provision.go",
			"actors/pools/classes/classes.go", "actors/pools/index/admission.go", "actors/pools/tasks/grow.go",
		},
	},
	{
		title: "The data of a deleted claim", met: "in the events of claims and PoolVolumes",
		cause: "What a claim asks back is not retained, is of another class, mode or size, or another claim had it first.",
		cure:  "The message says what there is. See [the afterlife of a claim](claims.md).",
		from: []string{
			"actors/pools/tasks/restore.go", "actors/pools/tasks/giveback.go", "actors/pools/tasks/lead.go", "actors/pools/tasks/retain.go",
			"actors/pools/tasks/claim.go", "actors/pools/tasks/endretained.go", "actors/pools/classes/evict.go", "actors/pools/classes/expire.go",
		},
	},
	{
		title: "Pools, and the controller", met: "in events and the status of Pools, PoolClasses and PoolVolumes, and in the controller's log",
		cause: "What the resource names is not there, is another one's, or is still needed.",
		cure:  "The message says which object to correct or to delete. `kubectl describe vpsa` shows a Pool with its conditions.",
		from: []string{
			"actors/pools", "actors/pools/classes", "actors/pools/env", "actors/pools/index", "actors/pools/nodes", "actors/pools/pool",
			"actors/pools/rules", "actors/pools/tasks", "actors/pools/unclaimed",
			"internal/controller/watch", "internal/lib/follow", "internal/model/v1alpha1",
		},
	},
	{
		title: "A volume of an array is not attached", met: "in the pod's events, which the attacher writes",
		cause: "The node's PoolNode is missing or says nothing, or the volume is attached elsewhere.",
		cure: "Look whether the daemon runs on the node; [The address of a node](pools.md#the-address-of-a-node). Detach on the array " +
			"what the message names.",
		from: []string{
			"actors/pools/tasks/attach.go", "actors/pools/tasks/detach.go", "actors/pools/tasks/nodes.go", "actors/pools/tasks/byhand.go",
			"actors/pools/tasks/serverrecords.go", "actors/pools/servers", "actors/pools/pool/chap.go",
		},
	},
	{
		title: "An array answers with an error", met: "in events of claims, pods and Pools",
		cause: "The array refuses, is full, or cannot be reached; or it is not the one that the Pool names.",
		cure:  "Look at the array, and at the Pool's `spec.vpsa`: endpoint, access key, CA. Katbox tries again by itself.",
		from:  []string{"internal/controller/array", "internal/controller/vpsa"},
	},
	{
		title: "A volume of an array is not mounted", met: "in the pod's events",
		cause: "The volume's parameters contradict one another, or another operation on it runs.",
		cure:  "See [Volumes of arrays](troubleshooting.md#volumes-of-arrays).",
		from:  []string{"actors/arrays", "internal/node/csi/persistent", "internal/node/attach"},
	},
	{
		title: "NFS", met: "in the pod's events",
		cause: "The array's export is not reached, is refused, or has a mount option that Katbox does not know.",
		cure:  "Try port 2049 of the array from the node; compare the node's address; correct `mountOptions` of the StorageClass.",
		from:  []string{"internal/node/attach/nfs"},
	},
	{
		title: "iSCSI", met: "in the pod's events",
		cause: "The node cannot log in, its tools are missing, or the disk that appears is not the volume's.",
		cure:  "Install and start `open-iscsi`; try port 3260 of the array; [What a node needs](pools.md#what-a-node-needs).",
		from:  []string{"internal/node/attach/iscsi", "internal/node/attach/host"},
	},
	{
		title: "A disk, and its file system", met: "in the pod's events",
		cause: "The disk is not empty, is damaged, is in use, or the node lacks a program for its file system.",
		cure: "Katbox formats nothing that has data, and repairs nothing that may lose data. Look at the disk on the node; install " +
			"what the message names.",
		from: []string{"internal/node/attach/disk"},
	},
	{
		title: "Local pools", met: "in events of claims and pods, and in the daemon's log",
		cause: "A pool's disk is not mounted, is another one, or cannot do what is asked for.",
		cure:  "Mount the disk that the message names: [Prepare a node](local-pools.md#prepare-a-node).",
		from:  []string{"actors/local", "internal/model/local", "internal/node/localdisk", "internal/controller/onarray", "cmd/katbox/known.go"},
	},
	{
		title: "A node, and the API server", met: "in the daemon's log, and in the pod's events",
		cause: "The daemon cannot reach the API server, lacks a right, or does not find the node's address.",
		cure:  "Apply the manifests of the image's version again; check `--storage-network`.",
		from:  []string{"internal/node/poolnode", "internal/node/kubeapi"},
	},
}

// noUsers are the directories whose texts, and those below, no user meets, with the reason.
var noUsers = map[string]string{
	"internal/testing":                "fakes, and what helps tests",
	"internal/lib/crashpoint":         "ends programs in tests",
	"internal/gateway/gatewaymetrics": "what metrics are for: reference.md has it",
	"internal/controller/poolmetrics": "what metrics are for: reference.md has it",
	"internal/node/metrics":           "what metrics are for: reference.md has it",
	"internal/node/intake":            "words of the log",
	"internal/node/lastwords":         "words of the log",
	"internal/lib/shares":             "who asks for a slot says why there is none",
	"internal/lib/logkeys":            "keys of the log",
	"internal/lib/logsink":            "words of the log",
	"internal/model/optin":            "why a volume is left alone, which is no failure",
}
