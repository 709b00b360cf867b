// Named templates, which turn webhooks of GitHub, Grafana and Alertmanager into messages.

export interface NamedTemplate {
  readonly title?: string | undefined;
  readonly message?: string | undefined;
  readonly priority?: string | undefined;
}

const line = (...parts: readonly string[]): string => parts.join('');

const grafana: NamedTemplate = {
  title: line(
    '{{if eq .status "firing"}}🚨 {{default "Alert firing" .title}}',
    '{{else if eq .status "resolved"}}✅ {{default "Alert resolved" .title}}',
    '{{else}}⚠️ Unknown alert: {{default "Alert" .title}}{{end}}',
  ),
  message: '{{trunc 2000 .message}}',
};

const alertmanager: NamedTemplate = {
  title: line(
    '{{if eq .status "firing"}}🚨 Alert: {{(first .alerts).labels.alertname}}',
    '{{else if eq .status "resolved"}}✅ Resolved: {{(first .alerts).labels.alertname}}',
    '{{else}}{{fail "Unsupported Alertmanager status."}}{{end}}',
  ),
  message: line(
    'Status: {{title .status}}\nReceiver: {{.receiver}}',
    '{{range .alerts}}\nAlert: {{.labels.alertname}}\nInstance: {{.labels.instance}}',
    '\nSeverity: {{.labels.severity}}\nStarts at: {{.startsAt}}',
    '{{if .endsAt}}Ends at: {{.endsAt}}{{end}}',
    '{{if .annotations.summary}}\nSummary: {{.annotations.summary}}{{end}}',
    '{{if .annotations.description}}\nDescription: {{.annotations.description}}{{end}}',
    '\nSource: {{.generatorURL}}\n\n{{end}}',
  ),
};

const isStar = 'and .starred_at (eq .action "created")';
const isWatch = 'and .repository (eq .action "started")';
const isComment = 'and .comment (eq .action "created")';
const unknownEvent = '{{else}}{{fail "Unsupported GitHub event type or action."}}{{end}}';

const github: NamedTemplate = {
  title: line(
    `{{if ${isStar}}}⭐ {{.sender.login}} starred {{.repository.name}}`,
    `{{else if ${isWatch}}}👀 {{.sender.login}} started watching {{.repository.name}}`,
    `{{else if ${isComment}}}💬 New comment on issue #{{.issue.number}} {{.issue.title}}`,
    '{{else if .pull_request}}🔀 Pull request {{.action}}: #{{.pull_request.number}} {{.pull_request.title}}',
    '{{else if .issue}}🐛 Issue {{.action}}: #{{.issue.number}} {{.issue.title}}',
    unknownEvent,
  ),
  message: line(
    `{{if ${isStar}}}Stargazer: {{.sender.html_url}}\nRepository: {{.repository.html_url}}`,
    `{{else if ${isWatch}}}Watcher: {{.sender.html_url}}\nRepository: {{.repository.html_url}}`,
    `{{else if ${isComment}}}Commenter: {{.comment.user.html_url}}`,
    '\nRepository: {{.repository.html_url}}\nComment link: {{.comment.html_url}}\n',
    '{{if .comment.body}}\nComment:\n{{trunc 2000 .comment.body}}{{end}}',
    '{{else if .pull_request}}Branch: {{.pull_request.head.ref}} → {{.pull_request.base.ref}}',
    '\n{{title .action}} by: {{.pull_request.user.html_url}}\nRepository: {{.repository.html_url}}',
    '\nPull request: {{.pull_request.html_url}}\n',
    '{{if .pull_request.body}}\nDescription:\n{{trunc 2000 .pull_request.body}}{{end}}',
    '{{else if .issue}}{{title .action}} by: {{.issue.user.html_url}}',
    '\nRepository: {{.repository.html_url}}\nIssue link: {{.issue.html_url}}\n',
    '{{if .issue.labels}}Labels: {{range .issue.labels}}{{.name}} {{end}}{{end}}\n',
    '{{if .issue.body}}\nDescription:\n{{trunc 2000 .issue.body}}{{end}}',
    unknownEvent,
  ),
};

const builtIn: Readonly<Record<string, NamedTemplate>> = { github, grafana, alertmanager };

/** Undefined: unknown name. Templates of the configuration have precedence. */
export function findTemplate(
  name: string,
  own: Readonly<Record<string, NamedTemplate>> = {},
): NamedTemplate | undefined {
  if (!/^[-_A-Za-z0-9]+$/.test(name)) return undefined;
  if (Object.hasOwn(own, name)) return own[name];
  return Object.hasOwn(builtIn, name) ? builtIn[name] : undefined;
}
