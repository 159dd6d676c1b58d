{{/* The labels of every object. */}}
{{- define "proffer.labels" -}}
app.kubernetes.io/name: proffer
app.kubernetes.io/part-of: proffer
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The labels of the pods, by which everything selects them. */}}
{{- define "proffer.selector" -}}
app.kubernetes.io/name: proffer
app.kubernetes.io/component: operator
{{- end }}

{{/*
The objects in some files, which `make manifests` copies from config. They get the labels of the
chart, the namespace of the release, and more labels and annotations. Takes context, files (a
pattern), labels and annotations (both optional).
*/}}
{{- define "proffer.copied" -}}
{{- $labels := include "proffer.labels" .context | fromYaml }}
{{- range $file, $text := .context.Files.Glob .files }}
{{- range regexSplit "(?m)^---$" (toString $text) -1 }}
{{- $object := . | replace "proffer-system" $.context.Release.Namespace | fromYaml }}
{{- if $object }}
{{- $_ := set $object.metadata "labels" (merge dict $labels ($object.metadata.labels | default dict) ($.labels | default dict)) }}
{{- if has $object.kind (list "Role" "RoleBinding") }}
{{- $_ := set $object.metadata "namespace" $.context.Release.Namespace }}
{{- end }}
{{- with $.annotations }}
{{- $_ := set $object.metadata "annotations" (merge dict . ($object.metadata.annotations | default dict)) }}
{{- end }}
---
{{ toYaml $object }}
{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* "true" for Kubernetes 1.25 to 1.29, or if the value olderKubernetes is true. */}}
{{- define "proffer.olderKubernetes" -}}
{{- if eq (toString .Values.olderKubernetes) "auto" -}}
{{- semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version }}
{{- else -}}
{{- .Values.olderKubernetes }}
{{- end }}
{{- end }}

{{- define "proffer.image" -}}
{{- $repository := .Values.image.repository | required "set image.repository to an image that the nodes can pull, such as --set image.repository=registry.example.com/proffer" }}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/*
90 % of the memory limit, for the garbage collector: it works harder before the kernel kills the
process. Empty without a limit.
*/}}
{{- define "proffer.goMemoryLimit" -}}
{{- with (.Values.resources.limits | default dict).memory }}
{{- $mebibytes := regexFind "^[0-9]+" . | int64 }}
{{- if hasSuffix "Gi" . }}
{{- $mebibytes = mul $mebibytes 1024 }}
{{- end }}
{{- div (mul $mebibytes 9) 10 }}MiB
{{- end }}
{{- end }}

{{/*
The configuration file: the value configuration, and the reconciler MetaSync if accounting is
enabled. Empty if there is neither. It is JSON, which is also YAML: toYaml writes large numbers as
1e+06.
*/}}
{{- define "proffer.configuration" -}}
{{- $file := deepCopy .Values.configuration }}
{{- with .Values.accounting }}
{{- if .enabled }}
{{- if not $file.clusterID }}
{{- fail "accounting.enabled=true needs the ID of this cluster in Liqo: set configuration.clusterID" }}
{{- end }}
{{- if has "MetaSync" ($file.reconcilers | default list) }}
{{- fail "accounting.enabled=true and configuration.reconcilers both list MetaSync: set one of them" }}
{{- end }}
{{- $args := dict "engine" .engine "dsnFile" "/etc/proffer/database/dsn" }}
{{- if .ca }}
{{- $_ := set $args "tls" (dict "caFile" "/etc/proffer/database/ca.crt") }}
{{- end }}
{{- if ne .migrate "Auto" }}
{{- $_ := set $args "migrate" .migrate }}
{{- end }}
{{- if ne (int .sampleSeconds) 60 }}
{{- $_ := set $args "sampleSeconds" (int .sampleSeconds) }}
{{- end }}
{{- if .retentionDays }}
{{- $_ := set $args "retentionDays" (int .retentionDays) }}
{{- end }}
{{- $_ := set $file "reconcilers" (append ($file.reconcilers | default list) "MetaSync") }}
{{- $_ := set $file "pluginConfig" (append ($file.pluginConfig | default list) (dict "name" "MetaSync" "args" $args)) }}
{{- end }}
{{- end }}
{{- if $file }}
{{- merge (dict "apiVersion" "config.proffer.dev/v1alpha1" "kind" "OperatorConfiguration") $file | toPrettyJson }}
{{- end }}
{{- end }}

{{/* The flags of the operator. The last one counts if one is repeated. */}}
{{- define "proffer.args" -}}
- --leader-elect
- --grpc-bind-address=:6001
- --metrics-bind-address=:8443
- --health-probe-bind-address=:8081
{{- if ne .Values.batchPeriod "100ms" }}
- --batch-period={{ .Values.batchPeriod }}
{{- end }}
{{- if ne .Values.grpc.form "pools" }}
- --grpc-form={{ .Values.grpc.form }}
{{- end }}
{{- if ne (toString .Values.log.level) "info" }}
- --zap-log-level={{ .Values.log.level }}
{{- end }}
{{- if ne .Values.log.format "json" }}
- --zap-encoder={{ .Values.log.format }}
{{- end }}
{{- if include "proffer.configuration" . }}
- --config=/etc/proffer/configuration/config.yaml
{{- end }}
{{- if .Values.catalog.enabled }}
- --publish-offers
{{- end }}
{{- if or .Values.catalog.enabled .Values.orchestrator.enabled }}
{{- if ne (int .Values.catalog.qps) 20 }}
- --publish-offers-qps={{ .Values.catalog.qps }}
{{- end }}
{{- range .Values.catalog.subjects }}
- {{ printf "--offers-subject=%s" . | quote }}
{{- end }}
{{- end }}
{{- if .Values.catalogHTTP.enabled }}
- --catalog-bind-address=:8444
- --catalog-tls-cert-file=/etc/proffer/catalog-tls/tls.crt
- --catalog-tls-key-file=/etc/proffer/catalog-tls/tls.key
{{- if .Values.catalogHTTP.anonymous }}
- --catalog-anonymous
{{- end }}
{{- end }}
{{- if .Values.federation.enabled }}
- --federation
{{- end }}
{{- if .Values.flat.enabled }}
{{- if eq .Values.grpc.form "flat" }}
{{- fail "grpc.form=flat and flat.enabled=true serve the flat form twice: set one of them" }}
{{- end }}
- --grpc-flat-bind-address=:6002
{{- end }}
{{- if .Values.orchestrator.enabled }}
- --orchestrate
- --cluster-id=$(CLUSTER_ID)
{{- if .Values.orchestrator.legacyToggle }}
- --legacy-toggle
{{- end }}
{{- end }}
{{- if .Values.servedClasses.enabled }}
- --served-classes=proffer-served-classes
{{- range .Values.servedClasses.others }}
- --other-served-class={{ . }}
{{- end }}
{{- end }}
{{- if .Values.slicePodGuard.enabled }}
- --placements=proffer-placements
- --offloaded-pod-security={{ .Values.slicePodGuard.podSecurity }}
{{- end }}
{{- if .Values.tls.enabled }}
- --grpc-tls-cert=/etc/proffer/tls/tls.crt
- --grpc-tls-key=/etc/proffer/tls/tls.key
{{- if .Values.tls.clientCertificates }}
- --grpc-client-ca=/etc/proffer/tls/ca.crt
{{- end }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}
