{{- define "kubestow.labels" -}}
{app.kubernetes.io/name: kubestow, app.kubernetes.io/instance: {{ .Release.Name }}}
{{- end }}

{{- define "kubestow.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "kubestow.tlsSecret" -}}
{{- if .Values.tls.secretName -}}
{{ .Values.tls.secretName }}
{{- else if .Values.tls.certManager -}}
{{ .Release.Name }}-tls
{{- end -}}
{{- end }}

{{/* Given values take precedence. Without election every replica would schedule. */}}
{{- define "kubestow.config" -}}
{{- $election := dict "leaderElect" true "resourceName" .Release.Name "resourceNamespace" .Release.Namespace -}}
{{- $made := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" "leaderElection" $election -}}
{{- $config := mergeOverwrite $made (deepCopy .Values.config) -}}
{{- if and (gt (int .Values.replicas) 1) (not $config.leaderElection.leaderElect) -}}
{{- fail "config.leaderElection.leaderElect is false: set replicas to 1, or several replicas schedule the same pods" -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}
