// A client and a worker that use only the HTTP API.

import assert from 'node:assert/strict';
import { body, type Api } from './api-rig.ts';

export interface Enqueued {
  readonly id: string;
  readonly isDuplicate: boolean;
}
export interface Shown {
  readonly task: {
    readonly id: string;
    readonly state: string;
    readonly tenant?: string;
    readonly result?: unknown;
    readonly error?: { readonly message: string };
    readonly endsAs?: string;
    readonly steps: readonly {
      readonly name: string;
      readonly kind: string;
      readonly state: string;
      readonly attempts: number;
      readonly result?: unknown;
    }[];
  };
  readonly timeline: readonly { readonly what: string; readonly step?: string }[];
}
export interface Claimed {
  readonly token: { readonly id: string; readonly fence: number };
  readonly task: Shown['task'] & { readonly payload: unknown };
}

export async function enqueue(api: Api, token: string, more: object = {}): Promise<string> {
  const response = await api.post(
    '/api/v1/jobs',
    { type: 'email-send', payload: { to: 'c-1' }, ...more },
    token,
  );
  assert.equal(response.status, 201);
  return (await body<Enqueued>(response)).id;
}

export async function claim(
  api: Api,
  token: string,
  worker = 'py-1',
  more: { readonly types?: Record<string, number>; readonly waitMs?: number } = {},
): Promise<readonly Claimed[]> {
  const wanted = { worker, types: { 'email-send': 10 }, waitMs: 0, ...more };
  const response = await api.post('/api/v1/worker/claim', wanted, token);
  assert.equal(response.status, 200);
  return (await body<{ readonly items: readonly Claimed[] }>(response)).items;
}

export const report = (
  api: Api,
  token: string,
  { token: { id, fence } }: Claimed,
  name: string,
  more: object = {},
) => api.post(`/api/v1/worker/jobs/${id}/${name}`, { fence, ...more }, token);

/** Claims one job, waiting for it. */
export async function running(
  api: Api,
  token: string,
  more: { readonly worker?: string; readonly type?: string; readonly waitMs?: number } = {},
): Promise<Claimed> {
  const { worker = 'py-1', type = 'email-send', waitMs = 20_000 } = more;
  const [job] = await claim(api, token, worker, { types: { [type]: 1 }, waitMs });
  assert.ok(job !== undefined, 'nothing to claim');
  return job;
}

export async function shown(api: Api, token: string, id: string): Promise<Shown['task']> {
  return (await body<Shown>(await api.ask(`/api/v1/jobs/${id}`, token))).task;
}

/** Returns the body of a response whose status must be 200. */
export async function accepted<T>(pending: Promise<Response>): Promise<T> {
  const response = await pending;
  assert.equal(response.status, 200, await response.clone().text());
  return body<T>(response);
}

export interface ReceivedEvent {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Server-sent events, without comments. */
export async function* eventsOf(response: Response): AsyncGenerator<ReceivedEvent> {
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  let text = '';
  for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(
    new TextDecoderStream(),
  )) {
    text += chunk;
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = /^event: (.*)$/m.exec(block)?.[1];
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (event === undefined || data === undefined) continue;
      yield { event, data: JSON.parse(data) as ReceivedEvent['data'] };
    }
  }
}
