{{- define "katbox.name" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end }}

{{- define "katbox.selector" -}}
app.kubernetes.io/name: katbox
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "katbox.labels" -}}
{{ include "katbox.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "katbox.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}

{{- define "katbox.pluginDir" -}}
{{ .Values.kubeletDir }}/plugins/{{ .Values.driverName }}
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

{{- define "katbox.gateway" -}}
{{ include "katbox.name" . | trunc 41 | trimSuffix "-" }}-gateway
{{- end }}

{{- define "katbox.gatewaySelector" -}}
app.kubernetes.io/name: katbox-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "katbox.gatewayLabels" -}}
{{ include "katbox.gatewaySelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "katbox.gatewayImage" -}}
{{- with .Values.gateway.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
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

{{- define "katbox.controller" -}}
{{ include "katbox.name" . }}-controller
{{- end }}

{{- define "katbox.controllerSelector" -}}
app.kubernetes.io/name: katbox-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "katbox.controllerLabels" -}}
{{ include "katbox.controllerSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "katbox.controllerImage" -}}
{{- with .Values.pools.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
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
