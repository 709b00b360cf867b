// Calls of the API. Addresses are relative to this file, so the console works under any base path.

import type { Api } from '../api.gen.ts';

/** A variable, because the bundler would treat `new URL('…', import.meta.url)` as a file to include. */
const ownUrl = import.meta.url;
/** The URL of `/console/`. */
export const consoleUrl = new URL('../', ownUrl);
/** The URL of the server. */
export const serverUrl = new URL('../', consoleUrl);

export type RouteName = keyof Api;
export type ResponseOf<Name extends RouteName> = Api[Name]['response'];

interface Input<Name extends RouteName> {
  readonly params?: Api[Name]['params'];
  readonly query?: Api[Name]['query'];
  readonly body?: Api[Name]['body'];
  readonly signal?: AbortSignal;
}

export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly remedy: string;
  readonly requestId: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** A response with an error; `problem` is undefined if the server did not send one. */
export class ApiError extends Error {
  readonly status: number;
  readonly problem: Problem | undefined;

  constructor(status: number, problem: Problem | undefined) {
    super(problem?.detail ?? `The server answered with status ${status}.`);
    this.name = 'ApiError';
    this.status = status;
    this.problem = problem;
  }
}

export async function call<Name extends RouteName>(
  name: Name,
  { params, query, body, signal }: Input<Name> = {},
): Promise<ResponseOf<Name>> {
  const [method = 'GET', path = '/'] = name.split(' ');
  const values = (params ?? {}) as Readonly<Record<string, string>>;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, key: string) =>
    encodeURIComponent(values[key] ?? ''),
  );
  const url = new URL(filled.slice(1), serverUrl);
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === '') continue;
    for (const each of Array.isArray(value) ? value : [value])
      url.searchParams.append(key, String(each));
  }
  const response = await fetch(url, {
    method,
    // The session cookie counts only with this header.
    headers: {
      'x-millrace-app': 'console',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const isJson = response.headers.get('content-type')?.includes('json') === true;
  const content: unknown = isJson ? await response.json() : undefined;
  if (!response.ok) throw new ApiError(response.status, content as Problem | undefined);
  return content as ResponseOf<Name>;
}
