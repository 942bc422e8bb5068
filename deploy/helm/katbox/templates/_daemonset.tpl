{{- /* A DaemonSet of daemons. */ -}}
{{- define "katbox.daemonset" -}}
{{- $socket := printf "%s/csi.sock" (include "katbox.pluginDir" .) }}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ include "katbox.daemonSetName" . }}
  namespace: {{ .Release.Namespace }}
  labels:
    {{- include "katbox.allLabels" (list . (include "katbox.daemonSetSelector" .) dict) | nindent 4 }}
spec:
  {{- with include "katbox.revisionHistoryLimit" . }}{{ . | nindent 2 }}{{ end }}
  selector:
    matchLabels:
      {{- include "katbox.daemonSetSelector" . | nindent 6 }}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: {{ .Values.maxUnavailable }}
      # Never two daemons on one node.
      maxSurge: 0
  template:
    metadata:
      labels:
        {{- include "katbox.podLabels" (list . (include "katbox.daemonSetSelector" .) .Values.podLabels) | nindent 8 }}
      {{- with .Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "katbox.account" . }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- if include "katbox.hostNetwork" . }}
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      {{- end }}
      {{- with .Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with include "katbox.affinity" . }}
      affinity:
        {{- . | nindent 8 }}
      {{- end }}
      terminationGracePeriodSeconds: 30
      securityContext:
        # It has no effect on a privileged container, but scanners ask for it.
        {{- include "katbox.podSecurity" (list (dict "seccompProfile" (dict "type" "RuntimeDefault")) .Values.podSecurityContext) | nindent 8 }}
      containers:
        - name: katbox
          image: {{ include "katbox.image" . }}
          {{- with include "katbox.pullPolicy" .Values.image }}{{ . | nindent 10 }}{{ end }}
          args:
            - --nodeid=$(NODE_NAME)
            - --drivername={{ include "katbox.driver" . }}
            - --kubelet-dir={{ .Values.kubeletDir }}
            - --workdir-on-node=$(WORKDIR_ON_NODE)
            {{- if not .Values.sidecars.enabled }}
            - --registration-dir=/registration
            - --kubelet-registration-path={{ $socket }}
            {{- end }}
            - --http-endpoint=:{{ include "katbox.httpPort" . }}
            - --afterlifespan={{ .Values.lifespan }}
            {{- with .Values.lifespanSucceeded }}
            - --lifespan-succeeded={{ . }}
            {{- end }}
            {{- with .Values.maxLifespan }}
            - --max-lifespan={{ . }}
            {{- end }}
            {{- with .Values.releaseGrace }}
            - --release-grace={{ . }}
            {{- end }}
            {{- with .Values.sizeLimit }}
            - --size-limit={{ . }}
            {{- end }}
            {{- with .Values.inodeLimit }}
            - --inode-limit={{ . }}
            {{- end }}
            {{- with .Values.maxSizeLimit }}
            - --max-size-limit={{ . }}
            {{- end }}
            {{- with .Values.maxInodeLimit }}
            - --max-inode-limit={{ . }}
            {{- end }}
            - --headroom={{ .Values.headroom }}
            {{- with .Values.pruneInterval }}
            - --pruneinterval={{ . }}
            {{- end }}
            {{- with .Values.kubeletLine }}
            - --kubelet-line={{ . }}
            {{- end }}
            {{- with .Values.quota }}
            - --quota={{ . }}
            {{- end }}
            {{- with .Values.projectIDs }}
            - --project-ids={{ . }}
            {{- end }}
            {{- with .Values.minLifespan }}
            - --min-lifespan={{ . }}
            {{- end }}
            {{- with .Values.pressureOrder }}
            - --pressure-order={{ . }}
            {{- end }}
            {{- with .Values.maxPerOwner }}
            - --max-per-owner={{ .first | default 0 }},{{ .last }}
            {{- end }}
            {{- with .Values.outcomes }}
            - --outcomes={{ . }}
            {{- end }}
            {{- with .Values.eraseParallel }}
            - --erase-parallel={{ . }}
            {{- end }}
            {{- with .Values.recordSync }}
            - --record-sync={{ . }}
            {{- end }}
            {{- with .Values.recordSyncPatience }}
            - --record-sync-patience={{ . }}
            {{- end }}
            {{- if ne (toString .Values.tombstones) "" }}
            - --tombstones={{ int64 .Values.tombstones }}
            {{- end }}
            {{- if .Values.keepNoexec }}
            - --keep-noexec
            {{- end }}
            {{- with .Values.orphanGrace }}
            - --orphan-grace={{ . }}
            {{- end }}
            {{- with .Values.maxPin }}
            - --max-pin={{ . }}
            {{- end }}
            {{- with .Values.maxPinned }}
            - --max-pinned={{ . }}
            {{- end }}
            {{- with .Values.maxVolumesPerNode }}
            - --maxvolumespernode={{ . }}
            {{- end }}
            {{- with .Values.logLevel }}
            - --log-level={{ . }}
            {{- end }}
            {{- with .Values.logFormat }}
            - --log-format={{ . }}
            {{- end }}
            {{- with .Values.otlpEndpoint }}
            - --otlp-endpoint={{ . }}
            {{- end }}
            {{- with .Values.adminSocket }}
            - --admin-socket={{ . }}
            {{- end }}
            {{- if .Values.gateway.enabled }}
            - --gateway={{ include "katbox.gateway" . }}-nodes.{{ .Release.Namespace }}.svc:{{ include "katbox.gatewayNodesPort" . }}
            - --gateway-ca=/var/run/katbox-gateway/ca.crt
            - --gateway-token=/var/run/katbox-gateway/token
            {{- end }}
            {{- if .Values.policy }}
            - --policy-file=/etc/katbox/policy.yaml
            {{- end }}
            {{- if .Values.pools.enabled }}
            - --array-endpoint=unix:///array/csi.sock
            - --array-kubelet-registration-path={{ include "katbox.arrayDir" . }}/csi.sock
            - --chap-namespace={{ include "katbox.chapNamespace" . }}
            - --node-addresses=$(HOST_IPS)
            - --host-root=/host
            {{- with .Values.pools.node.storageNetwork }}
            - --storage-network={{ . }}
            {{- end }}
            {{- with .Values.pools.node.maxVolumes }}
            - --array-max-volumes={{ . }}
            {{- end }}
            {{- end }}
            {{- if .Values.localPools }}
            - --local-endpoint=unix:///local/csi.sock
            - --local-kubelet-registration-path={{ include "katbox.localDir" . }}/csi.sock
            - --controller={{ include "katbox.controllerNodes" . }}.{{ .Release.Namespace }}.svc:9444
            - --controller-ca=/var/run/katbox-controller/ca.crt
            - --controller-token=/var/run/katbox-controller/token
            {{- with .Values.pools.node.maxLocalVolumes }}
            - --local-max-volumes={{ . }}
            {{- end }}
            {{- range .Values.localPools }}
            - --local-pool={{ .poolClass }}={{ .path }}{{ with .backend }},backend={{ . }}{{ end }}{{ if .onRootDisk }},on-root-disk{{ end }}
            {{- end }}
            {{- end }}
            {{- with include "katbox.keptLogs" . | fromYaml }}
            - --logs=on
            {{- with .limit }}
            - --logs-limit={{ . }}
            {{- end }}
            {{- if ne .dir "/var/log/pods" }}
            - --pod-logs-dir={{ .dir }}
            {{- end }}
            {{- end }}
            {{- if include "katbox.archives" . }}
            {{- with .Values.archive }}
            - --archive={{ .what | default "OnFailure" }}
            {{- with .rate }}
            - --archive-rate={{ . }}
            {{- end }}
            {{- with .maxVolume }}
            - --archive-max={{ . }}
            {{- end }}
            {{- if (.bucket).caConfigMap }}
            - --archive-ca=/var/run/katbox-archive-ca/ca.crt
            {{- end }}
            {{- if hasPrefix "http://" (.bucket.endpoint | default "") }}
            - --archive-insecure
            {{- end }}
            {{- end }}
            {{- end }}
            {{- range .Values.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          env:
            # Where the volume workdir is on the node, which the container cannot see: the log
            # tells where retained files are.
            - name: WORKDIR_ON_NODE
              value: {{ .Values.workdir.hostPath }}
            - name: NODE_NAME
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
            {{- with .Values.goMemLimit }}
            - name: GOMEMLIMIT
              value: {{ . }}
            {{- end }}
            {{- if .Values.pools.enabled }}
            - name: HOST_IPS
              valueFrom:
                fieldRef:
                  fieldPath: status.hostIPs
            {{- end }}
            {{- with include "katbox.archiveProxy" . }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with .Values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          # The daemon ends with a line that says what to do: kubectl describe shows it.
          terminationMessagePolicy: FallbackToLogsOnError
          {{- if .Values.pools.enabled }}
          # Its usual path is below /dev, which is the host's.
          terminationMessagePath: /termination-log
          {{- end }}
          ports:
            {{- if .Values.sidecars.enabled }}
            - name: healthz
              containerPort: {{ .Values.sidecars.healthPort }}
            {{- end }}
            - name: metrics
              containerPort: {{ include "katbox.httpPort" . }}
          {{- $health := ternary "healthz" "metrics" .Values.sidecars.enabled }}
          # A start after a crash looks at every volume of the node first.
          startupProbe:
            httpGet:
              path: /healthz
              port: {{ $health }}
            periodSeconds: 2
            timeoutSeconds: 5
            failureThreshold: 300
          livenessProbe:
            httpGet:
              path: /healthz
              port: {{ $health }}
            periodSeconds: 10
            timeoutSeconds: 10
            failureThreshold: 6
          readinessProbe:
            httpGet:
              path: /readyz
              port: metrics
            periodSeconds: 5
            timeoutSeconds: 5
          {{- with .Values.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            # Kubernetes lets no other container share its mounts with the host.
            privileged: true
            runAsUser: 0
            runAsGroup: 0
            readOnlyRootFilesystem: true
            # As with the profile above: a privileged container has them all.
            capabilities:
              drop: [ALL]
            {{- with .Values.seLinuxOptions }}
            seLinuxOptions:
              {{- toYaml . | nindent 14 }}
            {{- end }}
          volumeMounts:
            - name: workdir
              mountPath: /csi-data-dir
              # What the host mounts below it must be seen, to be left alone.
              mountPropagation: HostToContainer
            - name: pods
              mountPath: {{ .Values.kubeletDir }}/pods
              mountPropagation: Bidirectional
            - name: pods-api
              mountPath: {{ .Values.kubeletDir }}/pods-api
              readOnly: true
            - name: plugin
              mountPath: /csi
            {{- if not .Values.sidecars.enabled }}
            - name: registration
              mountPath: /registration
            {{- end }}
            {{- if .Values.gateway.enabled }}
            - name: gateway
              mountPath: /var/run/katbox-gateway
              readOnly: true
            {{- end }}
            {{- if .Values.policy }}
            - name: policy
              mountPath: /etc/katbox
              readOnly: true
            {{- end }}
            {{- if .Values.pools.enabled }}
            # The socket, and the records of the volumes that are staged.
            - name: array
              mountPath: /array
            # Where the kubelet has volumes staged, and block devices published.
            - name: staging
              mountPath: {{ .Values.kubeletDir }}/plugins/kubernetes.io/csi
              mountPropagation: Bidirectional
            # Disks that appear later.
            - name: dev
              mountPath: /dev
              mountPropagation: HostToContainer
            # For the host's own iscsiadm, mkfs and fsck. With another propagation it would keep mounts that
            # the host has unmounted.
            - name: host
              mountPath: /host
              mountPropagation: HostToContainer
            - name: api
              mountPath: /var/run/secrets/kubernetes.io/serviceaccount
              readOnly: true
            {{- end }}
            {{- if .Values.localPools }}
            # The socket, and which pool was in which directory.
            - name: local
              mountPath: /local
            - name: controller
              mountPath: /var/run/katbox-controller
              readOnly: true
            # The directories above the pools: a disk that is mounted later, or comes back, has to be seen.
            {{- range $i, $dir := include "katbox.aboveLocalPools" . | splitList "\n" }}
            - name: local-pools-{{ $i }}
              mountPath: {{ $dir }}
              mountPropagation: HostToContainer
            {{- end }}
            {{- end }}
            {{- with include "katbox.keptLogs" . | fromYaml }}
            - name: pod-logs
              mountPath: {{ .dir }}
              readOnly: true
            {{- end }}
            {{- if include "katbox.archiveCA" . }}
            - name: archive-ca
              mountPath: /var/run/katbox-archive-ca
              readOnly: true
            {{- end }}
            {{- with .Values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
        {{- with .Values.sidecars }}
        {{- if .enabled }}
        - name: node-driver-registrar
          {{- include "katbox.nodeSidecar" (list $ "registrar") | nindent 10 }}
          args:
            - --csi-address=/csi/csi.sock
            - --kubelet-registration-path={{ $socket }}
          {{- with .resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            {{- include "katbox.sidecarSecurity" $ | nindent 12 }}
          volumeMounts:
            - name: plugin
              mountPath: /csi
            - name: registration
              mountPath: /registration
        - name: livenessprobe
          {{- include "katbox.nodeSidecar" (list $ "livenessProbe") | nindent 10 }}
          args:
            - --csi-address=/csi/csi.sock
            - --health-port={{ .healthPort }}
            - --probe-timeout=5s
          {{- with .resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            {{- include "katbox.sidecarSecurity" $ | nindent 12 }}
          volumeMounts:
            - name: plugin
              mountPath: /csi
        {{- end }}
        {{- end }}
      volumes:
        - name: workdir
          hostPath:
            path: {{ .Values.workdir.hostPath }}
            type: {{ .Values.workdir.type }}
        # The kubelet's directories have to be there: with another --root-dir the
        # pod waits and an event names the path, rather than mounting into nowhere.
        - name: pods
          hostPath:
            path: {{ .Values.kubeletDir }}/pods
            type: Directory
        # The socket by which a kubelet from 1.37 on tells how pods end; empty with an older one.
        - name: pods-api
          hostPath:
            path: {{ .Values.kubeletDir }}/pods-api
            type: DirectoryOrCreate
        - name: registration
          hostPath:
            path: {{ .Values.kubeletDir }}/plugins_registry
            type: Directory
        - name: plugin
          hostPath:
            path: {{ include "katbox.pluginDir" . }}
            type: DirectoryOrCreate
        {{- if .Values.gateway.enabled }}
        # The token is good for the gateway alone: the API server refuses it.
        - name: gateway
          projected:
            sources:
              - serviceAccountToken:
                  audience: katbox-gateway
                  expirationSeconds: 3600
                  path: token
              # Not there yet when the daemon starts first.
              - configMap:
                  name: {{ include "katbox.gateway" . }}-ca
                  optional: true
                  items:
                    - key: ca.crt
                      path: ca.crt
        {{- end }}
        {{- if .Values.policy }}
        - name: policy
          configMap:
            name: {{ include "katbox.name" . }}-policy
        {{- end }}
        {{- if .Values.pools.enabled }}
        - name: array
          hostPath:
            path: {{ include "katbox.arrayDir" . }}
            type: DirectoryOrCreate
        - name: staging
          hostPath:
            path: {{ .Values.kubeletDir }}/plugins/kubernetes.io/csi
            type: DirectoryOrCreate
        - name: dev
          hostPath:
            path: /dev
            type: Directory
        - name: host
          hostPath:
            path: /
            type: Directory
        # The token of the API server, for this container alone.
        - name: api
          projected:
            sources:
              - serviceAccountToken:
                  expirationSeconds: 3600
                  path: token
              - configMap:
                  name: kube-root-ca.crt
                  items:
                    - key: ca.crt
                      path: ca.crt
        {{- end }}
        {{- if .Values.localPools }}
        - name: local
          hostPath:
            path: {{ include "katbox.localDir" . }}
            type: DirectoryOrCreate
        # The token is good for the controller alone: the API server refuses it.
        - name: controller
          projected:
            sources:
              - serviceAccountToken:
                  audience: katbox-controller
                  expirationSeconds: 3600
                  path: token
              # Not there yet when the daemon starts first.
              - configMap:
                  name: {{ include "katbox.controller" . }}-ca
                  optional: true
                  items:
                    - key: ca.crt
                      path: ca.crt
        # On each node, also on one without such disks. In a directory that is made here pools would be made on
        # the root disk.
        {{- range $i, $dir := include "katbox.aboveLocalPools" . | splitList "\n" }}
        - name: local-pools-{{ $i }}
          hostPath:
            path: {{ $dir }}
            type: Directory
        {{- end }}
        {{- end }}
        {{- with include "katbox.keptLogs" . | fromYaml }}
        # What containers print. With another directory of the kubelet the pod waits and an event names the path.
        - name: pod-logs
          hostPath:
            path: {{ .dir }}
            type: Directory
        {{- end }}
        {{- with include "katbox.archiveCA" . }}
        # By it the daemon knows the store. It has no credentials: the gateway signs each request of it.
        - name: archive-ca
          configMap:
            name: {{ . }}
        {{- end }}
        {{- with .Values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}

{{- /* The values about the logs of pods; empty where these are not kept. Only with a cluster there is a namespace default to
be looked up: without one nothing says whether there are daemons that keep none. */ -}}
{{- define "katbox.keptLogs" -}}
{{- $logs := .Values.logs | default dict }}
{{- $kept := $logs.enabled | default false }}
{{- if eq (toString $kept) "detect" }}
{{- if .Release.IsInstall }}
{{- $kept = lookup "v1" "Namespace" "" "default" | empty | not }}
{{- else }}
{{- $kept = false }}
{{- $now := lookup "apps/v1" "DaemonSet" .Release.Namespace (include "katbox.name" .) }}
{{- range dig "spec" "template" "spec" "volumes" list $now }}
{{- $kept = or $kept (eq .name "pod-logs") }}
{{- end }}
{{- end }}
{{- end }}
{{- if $kept }}
{{- toYaml (merge (dict "dir" ($logs.dir | default "/var/log/pods")) $logs) }}
{{- end }}
{{- end }}

{{- /* Whether volumes are archived; empty: no. */ -}}
{{- define "katbox.archives" -}}
{{- if (.Values.archive).enabled }}
{{- if not .Values.gateway.enabled }}
{{- fail "archive.enabled needs gateway.enabled: the gateway signs what the nodes send to the bucket" }}
{{- end }}true
{{- end }}
{{- end }}

{{- /* A memory limit of the gateway, with what the archive adds: whole Mi or Gi, or MiB or GiB. Others stay as they are. */ -}}
{{- define "katbox.gatewayMemory" -}}
{{- $root := index . 0 }}
{{- $limit := index . 1 | toString }}
{{- if and (include "katbox.archives" $root) (regexMatch "^[0-9]+[MG]iB?$" $limit) }}
{{- $mebi := regexFind "^[0-9]+" $limit | int }}
{{- if contains "G" $limit }}{{ $mebi = mul $mebi 1024 }}{{ end }}
{{- add $mebi $root.Values.archive.gatewayMemory }}{{ regexFind "iB?$" $limit | printf "M%s" }}
{{- else }}
{{- $limit }}
{{- end }}
{{- end }}

{{- /* The ConfigMap with the CAs of the store; empty: there is none. */ -}}
{{- define "katbox.archiveCA" -}}
{{- if include "katbox.archives" . }}{{ (.Values.archive.bucket).caConfigMap }}{{ end }}
{{- end }}

{{- /* The environment of who reaches the store through a proxy. The API server is reached without it. */ -}}
{{- define "katbox.archiveProxy" -}}
{{- if include "katbox.archives" . }}
{{- with .Values.archive.proxy }}
{{- if .https -}}
- name: HTTPS_PROXY
  value: {{ .https | quote }}
- name: NO_PROXY
  value: $(KUBERNETES_SERVICE_HOST){{ with .except }},{{ . }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
