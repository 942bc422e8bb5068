{{- /* The reference of an image: called with the root, the image's value, the path of that, and the tag that it has if
none is given. The value was once the whole reference, and may still be. A registry that is set takes the place of the
one that the repository begins with. */ -}}
{{- define "katbox.imageOf" -}}
{{- $root := index . 0 }}
{{- $image := index . 1 }}
{{- $version := "" }}
{{- if kindIs "string" $image }}
{{- $image = dict "repository" $image }}
{{- else if $image.digest }}
{{- $version = printf "@%s" $image.digest }}
{{- else }}
{{- $version = printf ":%s" ($image.tag | default (index . 3) | required (printf "%s.tag is missing" (index . 2))) }}
{{- end }}
{{- $repository := $image.repository | required (printf "%s.repository is missing" (index . 2)) }}
{{- with $image.registry | default $root.Values.imageRegistry }}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) (regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" $repository "") }}
{{- end }}
{{- $repository }}{{ $version }}
{{- end }}

{{- /* As the image's value has it, where that is not what the API server would take. */ -}}
{{- define "katbox.pullPolicy" -}}
{{- if kindIs "map" . }}
{{- if ne (.pullPolicy | default "IfNotPresent") "IfNotPresent" -}}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
{{- end }}
{{- end }}

{{- define "katbox.image" -}}
{{ include "katbox.imageOf" (list . .Values.image "image" .Chart.AppVersion) }}
{{- end }}

{{- define "katbox.gatewayImage" -}}
{{ include "katbox.imageOf" (list . .Values.gateway.image "gateway.image" .Chart.AppVersion) }}
{{- end }}

{{- define "katbox.controllerImage" -}}
{{ include "katbox.imageOf" (list . .Values.pools.image "pools.image" .Chart.AppVersion) }}
{{- end }}

{{- /* One of the sidecars of the controller: called with the root and its name. */ -}}
{{- define "katbox.poolsSidecar" -}}
{{- $image := (get (index . 0).Values.pools.sidecars (index . 1)).image -}}
image: {{ include "katbox.imageOf" (list (index . 0) $image (printf "pools.sidecars.%s.image" (index . 1)) "") }}
{{- with include "katbox.pullPolicy" $image }}{{ . | nindent 0 }}{{ end }}
{{- end }}

{{- /* One of the sidecars of the daemon. */ -}}
{{- define "katbox.nodeSidecar" -}}
{{- $image := (get (index . 0).Values.sidecars (index . 1)).image -}}
image: {{ include "katbox.imageOf" (list (index . 0) $image (printf "sidecars.%s.image" (index . 1)) "") }}
{{- with include "katbox.pullPolicy" $image }}{{ . | nindent 0 }}{{ end }}
{{- end }}
