// What the page shows, as a command for a shell. The token stays out of it.

import { serverUrl } from './api.ts';

export interface ShellCommands {
  readonly curl: string;
  readonly cli: string;
}

export function taskCommands(id: string): ShellCommands {
  return {
    curl: curlOf(`api/v1/jobs/${encodeURIComponent(id)}`),
    cli: `millrace tasks show ${quoted(id)}`,
  };
}

export function traceCommands(correlationId: string): ShellCommands {
  return {
    curl: curlOf(`admin/traces/${encodeURIComponent(correlationId)}`),
    cli: `millrace trace ${quoted(correlationId)}`,
  };
}

export function eventCommands({
  stream,
  revision,
}: {
  readonly stream: string;
  readonly revision: number;
}): ShellCommands {
  const path = `api/v1/streams/${encodeURIComponent(stream)}/events?from=${revision}&limit=1`;
  return {
    curl: curlOf(path),
    cli: `millrace stream read ${quoted(stream)} --from ${revision} --limit 1`,
  };
}

function curlOf(path: string): string {
  const url = new URL(path, serverUrl).href;
  return `curl -sS -H "Authorization: Bearer $MILLRACE_TOKEN" ${quoted(url)}`;
}

/** For a POSIX shell: nothing inside of single quotes has a meaning. */
function quoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
