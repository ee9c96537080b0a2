{{/* Settings as environment variables: `topics.auto_create` is ONCELOG_TOPICS__AUTO_CREATE. */}}
{{- define "oncelog.settings" -}}
{{- $prefix := .prefix -}}
{{- range $key, $value := .tree }}
{{- $name := printf "%s%s" $prefix (upper $key) }}
{{- if kindIs "map" $value }}
{{- include "oncelog.settings" (dict "prefix" (printf "%s__" $name) "tree" $value) }}
{{- else if not (kindIs "invalid" $value) }}
- name: {{ $name }}
  {{- /* Whole numbers of YAML come as floating point, which would be written 1e+09. */}}
  {{- $whole := and (kindIs "float64" $value) (eq (float64 (int64 $value)) $value) }}
  value: {{ ternary (printf "%d" (int64 $value)) (toString $value) $whole | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "oncelog.internalAdvertised" -}}
{{- $l := .Values.listeners.internal -}}
{{- if $l.advertised -}}
{{ $l.advertised }}
{{- else if eq $l.advertise "service" -}}
{{ include "oncelog.bootstrap" . }}
{{- else -}}
{{ include "oncelog.fqdn" (dict "name" (printf "{pod_name}.%s" (include "oncelog.headless" .)) "root" .) }}:{{ $l.port }}
{{- end }}
{{- end }}

{{- define "oncelog.externalAdvertised" -}}
{{- $l := .Values.listeners.external -}}
{{- if $l.advertised -}}
{{ $l.advertised }}
{{- else if and (eq $l.service.type "NodePort") $l.service.nodePort -}}
{node_ip}:{{ $l.service.nodePort | int }}
{{- else -}}
{{ fail "listeners.external.enabled needs to know where its clients can reach it: set listeners.external.advertised (kafka.example.com:9094), or service.type NodePort and service.nodePort, whose nodes' addresses are then advertised" }}
{{- end }}
{{- end }}

{{- define "oncelog.env" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: NODE_IP
  valueFrom: {fieldRef: {fieldPath: status.hostIP}}
- name: ONCELOG_DATA_DIR
  value: /var/lib/oncelog
- name: ONCELOG_LISTENERS__INTERNAL__BIND
  value: 0.0.0.0:{{ .Values.listeners.internal.port }}
- name: ONCELOG_LISTENERS__INTERNAL__ADVERTISED
  value: {{ include "oncelog.internalAdvertised" . | quote }}
{{- if .Values.listeners.external.enabled }}
- name: ONCELOG_LISTENERS__EXTERNAL__BIND
  value: 0.0.0.0:{{ .Values.listeners.external.port }}
- name: ONCELOG_LISTENERS__EXTERNAL__ADVERTISED
  value: {{ include "oncelog.externalAdvertised" . | quote }}
{{- else }}
- name: ONCELOG_LISTENERS__EXTERNAL__BIND
  value: 127.0.0.1:{{ .Values.listeners.external.port }}
{{- end }}
- name: ONCELOG_ADMIN__BIND
  value: 0.0.0.0:{{ .Values.admin.port }}
{{- include "oncelog.settings" (dict "prefix" "ONCELOG_" "tree" .Values.config) }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "oncelog.probe" -}}
httpGet: {path: {{ .path }}, port: admin}
{{ toYaml .with }}
{{- end }}

{{- define "oncelog.podSpec" -}}
serviceAccountName: {{ include "oncelog.serviceAccount" . }}
automountServiceAccountToken: false
# The variables Kubernetes would make for Services look like settings.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.extraInitContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: oncelog
    image: {{ include "oncelog.image" . }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    {{- with .Values.extraArgs }}
    args:
      - serve
      {{- toYaml . | nindent 6 }}
    {{- end }}
    env:
      {{- include "oncelog.env" . | nindent 6 }}
    {{- with .Values.extraEnvFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    ports:
      - {name: kafka, containerPort: {{ .Values.listeners.internal.port }}}
      {{- if .Values.listeners.external.enabled }}
      - {name: kafka-external, containerPort: {{ .Values.listeners.external.port }}}
      {{- end }}
      - {name: admin, containerPort: {{ .Values.admin.port }}}
    startupProbe:
      {{- include "oncelog.probe" (dict "path" "/livez" "with" .Values.probes.startup) | nindent 6 }}
    readinessProbe:
      {{- include "oncelog.probe" (dict "path" "/readyz" "with" .Values.probes.readiness) | nindent 6 }}
    livenessProbe:
      {{- include "oncelog.probe" (dict "path" "/livez" "with" .Values.probes.liveness) | nindent 6 }}
    resources:
      {{- toYaml .Values.resources | nindent 6 }}
    securityContext:
      {{- toYaml .Values.securityContext | nindent 6 }}
    volumeMounts:
      - {name: data, mountPath: /var/lib/oncelog}
      - {name: tmp, mountPath: /tmp}
      {{- with .Values.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
  {{- with .Values.extraContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: 64Mi}
  {{- if not .Values.persistence.enabled }}
  - name: data
    emptyDir: {}
  {{- else if .Values.persistence.existingClaim }}
  - name: data
    persistentVolumeClaim: {claimName: {{ .Values.persistence.existingClaim }}}
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
