{{- /* A values file of an earlier chart, and helm upgrade --reuse-values, know nothing of values that are newer. So
what is below a newer value is read as (.Values.newer).below, which is empty then. */ -}}

{{- define "katbox.name" -}}
{{- $name := .Release.Name }}
{{- if .Values.fullnameOverride }}
{{- $name = .Values.fullnameOverride }}
{{- else if and .Values.nameOverride (not (contains .Values.nameOverride .Release.Name)) }}
{{- $name = printf "%s-%s" .Release.Name .Values.nameOverride }}
{{- end }}
{{- $name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- /* The selector of a DaemonSet cannot change, so neither can these. */ -}}
{{- define "katbox.selector" -}}
app.kubernetes.io/name: katbox
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "katbox.labels" -}}
{{ include "katbox.allLabels" (list . (include "katbox.selector" .) dict) }}
{{- end }}

{{- /* Called with the root, a selector, and further labels of the object, which go before those of all objects. */ -}}
{{- define "katbox.allLabels" -}}
{{- $root := index . 0 -}}
{{ index . 1 }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with merge (deepCopy (index . 2)) ($root.Values.commonLabels | default dict) }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Of a template of pods: called with the root, the selector and further labels. */ -}}
{{- define "katbox.podLabels" -}}
{{- $root := index . 0 }}
{{- with merge (deepCopy (index . 2)) ($root.Values.commonLabels | default dict) -}}
{{ toYaml . }}
{{ end }}
{{- index . 1 }}
{{- end }}

{{- /* The driver's name. */ -}}
{{- define "katbox.driver" -}}
{{- $name := (.Values.csiDriver).name | default .Values.driverName | default "katbox.csi.paypal.com" }}
{{- if ne $name (.Values.driverName | default $name) }}
{{- fail (printf "csiDriver.name is %s and driverName, its old name, is %s: remove driverName (--set driverName=)" $name .Values.driverName) }}
{{- end }}
{{- $name }}
{{- end }}

{{- /* Whether the release has the CSIDriver object; empty: no. */ -}}
{{- define "katbox.createCSIDriver" -}}
{{- $new := toString (.Values.csiDriver).create }}
{{- $old := toString .Values.createCSIDriver }}
{{- if and (eq $new "false") (eq $old "true") }}
{{- fail "csiDriver.create is false and createCSIDriver, its old name, is true: remove createCSIDriver (--set createCSIDriver=)" }}
{{- end }}
{{- if not (has "false" (list $new $old)) }}true{{ end }}
{{- end }}

{{- define "katbox.pluginDir" -}}
{{ .Values.kubeletDir }}/plugins/{{ include "katbox.driver" . }}
{{- end }}

{{- /* The name of a ServiceAccount: called with its value, the path of that, and the name that it has if none is given. */ -}}
{{- define "katbox.accountOf" -}}
{{- $account := index . 0 | default dict }}
{{- if eq (toString $account.create) "false" }}
{{- $account.name | required (printf "%s.create is false: set %[1]s.name to the ServiceAccount that is there" (index . 1)) }}
{{- else }}
{{- $account.name | default (index . 2) }}
{{- end }}
{{- end }}

{{- define "katbox.account" -}}
{{ include "katbox.accountOf" (list .Values.serviceAccount "serviceAccount" (include "katbox.name" .)) }}
{{- end }}

{{- define "katbox.gatewayAccount" -}}
{{ include "katbox.accountOf" (list .Values.gateway.serviceAccount "gateway.serviceAccount" (include "katbox.gateway" .)) }}
{{- end }}

{{- define "katbox.controllerAccount" -}}
{{ include "katbox.accountOf" (list .Values.pools.serviceAccount "pools.serviceAccount" (include "katbox.controller" .)) }}
{{- end }}

{{- /* The security context of a pod: called with the chart's, and with that of the values, whose fields replace the chart's. */ -}}
{{- define "katbox.podSecurity" -}}
{{- $fields := index . 0 }}
{{- range $field, $value := index . 1 }}
{{- $_ := set $fields $field $value }}
{{- end }}
{{- toYaml $fields }}
{{- end }}

{{- /* One may be 0, and a value that is not there is no number. */ -}}
{{- define "katbox.revisionHistoryLimit" -}}
{{- if not (has (toString .Values.revisionHistoryLimit) (list "" "<nil>")) -}}
revisionHistoryLimit: {{ int64 .Values.revisionHistoryLimit }}
{{- end }}
{{- end }}

{{- define "katbox.sidecarSecurity" -}}
runAsUser: 0
runAsGroup: 0
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- /* Of a PodMonitor: called with the root, and the label of the target that becomes the instance. */ -}}
{{- define "katbox.endpoint" -}}
{{- $monitor := (index . 0).Values.podMonitor -}}
port: metrics
interval: {{ $monitor.interval }}
{{- with $monitor.scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
relabelings:
  - sourceLabels: [{{ index . 1 }}]
    targetLabel: instance
  {{- with $monitor.relabelings }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $monitor.metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "katbox.testSelector" -}}
app.kubernetes.io/name: katbox-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "katbox.gateway" -}}
{{ include "katbox.name" . | trunc 41 | trimSuffix "-" }}-gateway
{{- end }}

{{- define "katbox.gatewaySelector" -}}
app.kubernetes.io/name: katbox-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "katbox.gatewayLabels" -}}
{{ include "katbox.allLabels" (list . (include "katbox.gatewaySelector" .) dict) }}
{{- end }}

{{- /* The Secret that is mounted; none if the gateway makes its certificate itself. */}}
{{- define "katbox.gatewayMounted" -}}
{{- with .Values.gateway.certificates -}}
{{- if eq .mode "certManager" -}}
{{ include "katbox.gateway" $ }}-tls
{{- else if eq .mode "existingSecret" -}}
{{ .existingSecret }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The gateway's ports. On the node's network 10250 is the kubelet's, and 8080 often somebody else's. */ -}}
{{- define "katbox.gatewayPort" -}}
{{ .Values.gateway.port | default (ternary 4443 10250 (.Values.gateway.hostNetwork | default false)) }}
{{- end }}

{{- define "katbox.gatewayNodesPort" -}}
{{ .Values.gateway.nodesPort | default 9443 }}
{{- end }}

{{- define "katbox.gatewayHTTPPort" -}}
{{ .Values.gateway.httpPort | default (ternary 9444 8080 (.Values.gateway.hostNetwork | default false)) }}
{{- end }}

{{- define "katbox.controller" -}}
{{ include "katbox.name" . }}-controller
{{- end }}

{{- define "katbox.controllerSelector" -}}
app.kubernetes.io/name: katbox-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "katbox.controllerLabels" -}}
{{ include "katbox.allLabels" (list . (include "katbox.controllerSelector" .) dict) }}
{{- end }}

{{- define "katbox.chapNamespace" -}}
{{ .Values.pools.chapNamespace | default (printf "%s-chap" (.Release.Namespace | trunc 58 | trimSuffix "-")) }}
{{- end }}

{{- /* Whether the daemon has the host's network; empty: no. */ -}}
{{- define "katbox.hostNetwork" -}}
{{- if or .Values.hostNetwork .Values.pools.enabled }}true{{ end }}
{{- end }}

{{- define "katbox.httpPort" -}}
{{- ternary .Values.pools.node.httpPort .Values.httpPort .Values.pools.enabled }}
{{- end }}

{{- define "katbox.arrayDir" -}}
{{ .Values.kubeletDir }}/plugins/array.csi.katbox.io
{{- end }}

{{- define "katbox.localDir" -}}
{{ .Values.kubeletDir }}/plugins/local.csi.katbox.io
{{- end }}

{{- /* The Service by which the daemons reach the controller; a Service's name has 63 letters at most. */ -}}
{{- define "katbox.controllerNodes" -}}
{{ include "katbox.name" . | trunc 45 | trimSuffix "-" }}-controller-nodes
{{- end }}

{{- /* The directories above the pools, one in a line. */ -}}
{{- define "katbox.aboveLocalPools" -}}
{{- $all := list }}
{{- range .Values.localPools }}
{{- $all = append $all (dir .path) }}
{{- end }}
{{- uniq $all | join "\n" }}
{{- end }}

{{- /*
Of a CSIDriver of the pools, from its field fsGroupPolicy on: pods with its volumes go to no node without it. An API server
before 1.35 refuses an object with the field; until 1.37 it drops the field, unless a feature gate says otherwise.
*/}}
{{- define "katbox.preventScheduling" -}}
{{- if and .Values.pools.preventPodSchedulingIfMissing (semverCompare ">=1.37.0-0" .Capabilities.KubeVersion.Version) }}
  # Pods with such volumes go to no node on which the driver does not run.
  preventPodSchedulingIfMissing: true
{{- end }}
{{- end }}
