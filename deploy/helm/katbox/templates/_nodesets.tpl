{{- /* Sets of nodes whose daemons have values of their own. The DaemonSet of all other nodes is the one that is there
without sets, and keeps its name and its selector. */ -}}

{{- /* Refuses sets that a node may be in at the same time: two daemons would register one driver. Two selectors have no
node in common, whatever the nodes' labels are, if a label is in both with different values. */ -}}
{{- define "katbox.checkNodeSets" -}}
{{- $earlier := list }}
{{- range $set := .Values.nodeSets }}
{{- range $other := $earlier }}
{{- if eq $set.name $other.name }}
{{- fail (printf "nodeSets: two sets are named %s" $set.name) }}
{{- end }}
{{- $apart := false }}
{{- range $label, $value := $set.nodeSelector }}
{{- if and (hasKey $other.nodeSelector $label) (ne $value (get $other.nodeSelector $label)) }}
{{- $apart = true }}
{{- end }}
{{- end }}
{{- if not $apart }}
{{- fail (printf "nodeSets: a node may be in the set %s (%s) and in the set %s (%s): give both nodeSelectors one label, with different values"
    $other.name ($other.nodeSelector | toJson) $set.name ($set.nodeSelector | toJson)) }}
{{- end }}
{{- end }}
{{- $earlier = append $earlier $set }}
{{- end }}
{{- end }}

{{- /* The root with the values of a set: called with the root and the set. Of workdir, logs and nodeSelector a set has some
fields, and what it has of all others replaces the whole. */ -}}
{{- define "katbox.nodeSetDaemonSet" -}}
{{- $root := index . 0 }}
{{- $set := index . 1 }}
{{- $values := deepCopy $root.Values }}
{{- range $name, $value := omit $set "name" }}
{{- if has $name (list "workdir" "logs" "nodeSelector") }}
{{- $own := $value }}
{{- $value = deepCopy (get $root.Values $name | default dict) }}
{{- range $field, $one := $own }}
{{- $_ := set $value $field $one }}
{{- end }}
{{- end }}
{{- $_ := set $values $name $value }}
{{- end }}
{{- include "katbox.daemonset" (dict "NodeSet" $set.name "Values" $values "Release" $root.Release "Chart" $root.Chart
    "Capabilities" $root.Capabilities "Files" $root.Files "Template" $root.Template) }}
{{- end }}

{{- define "katbox.daemonSetName" -}}
{{- if .NodeSet -}}
{{ include "katbox.name" . | trunc (int (sub 51 (len .NodeSet))) | trimSuffix "-" }}-{{ .NodeSet }}
{{- else -}}
{{ include "katbox.name" . }}
{{- end }}
{{- end }}

{{- /* The names of all DaemonSets, with a bar between. */ -}}
{{- define "katbox.daemonSetNames" -}}
{{- $names := list (include "katbox.name" .) }}
{{- range .Values.nodeSets }}
{{- $names = append $names (include "katbox.daemonSetName" (dict "NodeSet" .name "Values" $.Values "Release" $.Release)) }}
{{- end }}
{{- join "|" $names }}
{{- end }}

{{- define "katbox.daemonSetSelector" -}}
{{ include "katbox.selector" . }}
{{- with .NodeSet }}
katbox.io/node-set: {{ . }}
{{- end }}
{{- end }}

{{- /* The affinity of a DaemonSet. That of the nodes without a set keeps off the nodes of each: a node is not in a set
if one label of the set's nodeSelector is another one, and terms are alternatives. */ -}}
{{- define "katbox.affinity" -}}
{{- $affinity := deepCopy (.Values.affinity | default dict) }}
{{- if and .Values.nodeSets (not .NodeSet) }}
{{- $node := $affinity.nodeAffinity | default dict }}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict }}
{{- $terms := $required.nodeSelectorTerms | default (list dict) }}
{{- range $set := .Values.nodeSets }}
{{- $alternatives := list }}
{{- range $term := $terms }}
{{- range $label, $value := $set.nodeSelector }}
{{- $expressions := append ($term.matchExpressions | default list) (dict "key" $label "operator" "NotIn" "values" (list $value)) }}
{{- $alternatives = append $alternatives (set (deepCopy $term) "matchExpressions" $expressions) }}
{{- end }}
{{- end }}
{{- $terms = $alternatives }}
{{- end }}
{{- $_ := set $required "nodeSelectorTerms" $terms }}
{{- $_ = set $node "requiredDuringSchedulingIgnoredDuringExecution" $required }}
{{- $_ = set $affinity "nodeAffinity" $node }}
{{- end }}
{{- with $affinity }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- /* Whether any node has local pools; empty: no. */ -}}
{{- define "katbox.hasLocalPools" -}}
{{- $some := not (empty .Values.localPools) }}
{{- range .Values.nodeSets }}
{{- $some = or $some (not (empty .localPools)) }}
{{- end }}
{{- if $some }}true{{ end }}
{{- end }}
