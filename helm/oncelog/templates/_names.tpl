{{- define "oncelog.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Short enough that what is put behind it, and the Pod's ordinal, still fit a name of 63 letters. */}}
{{- define "oncelog.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "oncelog.headless" -}}
{{- include "oncelog.fullname" . }}-headless
{{- end }}

{{/* A name in this namespace, complete. */}}
{{- define "oncelog.fqdn" -}}
{{- printf "%s.%s.svc.%s" .name .root.Release.Namespace .root.Values.clusterDomain }}
{{- end }}

{{- define "oncelog.bootstrap" -}}
{{- include "oncelog.fqdn" (dict "name" (include "oncelog.fullname" .) "root" .) }}:{{ .Values.service.port }}
{{- end }}

{{/* Never anything here that an upgrade changes: selectors and claim templates are immutable. */}}
{{- define "oncelog.selector" -}}
app.kubernetes.io/name: {{ include "oncelog.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: broker
{{- end }}

{{- define "oncelog.labels" -}}
{{ include "oncelog.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "oncelog.image" -}}
{{- $i := .Values.image -}}
{{- with $i.registry }}{{ . }}/{{ end }}{{ $i.repository }}
{{- if $i.digest }}@{{ $i.digest }}{{ else }}:{{ default .Chart.AppVersion $i.tag }}{{ end }}
{{- end }}

{{- define "oncelog.serviceAccount" -}}
{{- $own := ternary (include "oncelog.fullname" .) "default" .Values.serviceAccount.create -}}
{{- default $own .Values.serviceAccount.name }}
{{- end }}

{{/* The label that lets a Pod of the same namespace through the NetworkPolicy. */}}
{{- define "oncelog.clientLabel" -}}
{{- include "oncelog.fullname" . }}-client
{{- end }}
