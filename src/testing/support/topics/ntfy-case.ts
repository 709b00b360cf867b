// Building blocks of the cases of ntfy's API: a request and its expected response.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';

/** Our server or ntfy itself, with the users and rules of `ntfy-server-facts.ts`. */
export interface CaseServer {
  readonly url: string;
}

export interface NtfyCase {
  readonly title: string;
  readonly run: (server: CaseServer) => Promise<void>;
}

export interface Sent {
  readonly method?: string;
  /** `{t}` is replaced by a new topic. Default: `/{t}`. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

export interface Message {
  readonly id: string;
  readonly time: number;
  readonly expires?: number;
  readonly event: string;
  readonly topic: string;
  readonly sequence_id?: string;
  readonly title?: string;
  readonly message?: string;
  readonly attachment?: { readonly url: string; readonly expires?: number; readonly size?: number };
  readonly actions?: readonly { readonly id: string }[];
}

export const newTopic = (): string => `t${randomBytes(6).toString('hex')}`;

export async function send(
  { url }: CaseServer,
  topic: string,
  { method = 'POST', path = '/{t}', headers = {}, body }: Sent,
): Promise<Response> {
  return fetch(`${url}${path.replaceAll('{t}', topic)}`, {
    method,
    // fetch accepts latin1 header values only.
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name,
        Buffer.from(value, 'utf8').toString('latin1'),
      ]),
    ),
    ...(body === undefined ? {} : { body }),
  });
}

export async function publish(server: CaseServer, topic: string, sent: Sent): Promise<Message> {
  const answer = await send(server, topic, sent);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  assert.equal(text.endsWith('}\n'), true, 'ends with a line feed');
  return JSON.parse(text) as Message;
}

export async function poll(
  server: CaseServer,
  topics: string,
  query = '',
  headers: Readonly<Record<string, string>> = {},
): Promise<readonly Message[]> {
  const path = `/${topics}/json?poll=1${query === '' ? '' : `&${query}`}`;
  const answer = await send(server, '', { method: 'GET', path, headers });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return lines(text);
}

export function lines(text: string): readonly Message[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Message);
}

/** A successful publish: compares the message without the fields that differ each time. */
export function taken(
  title: string,
  sent: Sent,
  expected: Readonly<Record<string, unknown>>,
): NtfyCase {
  return {
    title,
    async run(server) {
      const topic = newTopic();
      const message = await publish(server, topic, sent);
      checkShape(message, { ...expected });
      assert.deepEqual(shown(message, topic, server.url), {
        event: 'message',
        topic: '{t}',
        message: 'triggered',
        ...expected,
      });
      // The stored message equals the response.
      if (message.expires !== undefined && message.time <= Date.now() / 1_000) {
        assert.deepEqual(await poll(server, topic), [message]);
      }
    },
  };
}

export function rejectedWith(title: string, sent: Sent, code: number): NtfyCase {
  return {
    title,
    async run(server) {
      const answer = await send(server, newTopic(), sent);
      const problem = (await answer.json()) as Readonly<Record<string, unknown>>;
      assert.equal(problem['code'], code, JSON.stringify(problem));
      assert.equal(problem['http'], Math.floor(code / 100));
      assert.equal(answer.status, Math.floor(code / 100));
      assert.equal(answer.headers.get('content-type'), 'application/json');
      assert.equal(answer.headers.get('access-control-allow-origin'), '*');
      assert.equal(answer.headers.get('www-authenticate'), null);
      assert.equal(answer.headers.get('retry-after'), null);
    },
  };
}

function checkShape(message: Message, expected: Readonly<Record<string, unknown>>): void {
  assert.match(message.id, /^[A-Za-z0-9]{12}$/);
  assert.ok(Math.abs(message.time - Date.now() / 1_000) < 4 * 86_400);
  if (expected['event'] === undefined && message.expires !== undefined) {
    assert.equal(message.expires - message.time, 43_200);
  }
}

/** Removes the fields that differ each time. */
function shown(message: Message, topic: string, url: string): Readonly<Record<string, unknown>> {
  const { id, time, expires, attachment, actions, ...rest } = message;
  assert.ok(typeof time === 'number' && (expires === undefined || typeof expires === 'number'));
  return JSON.parse(
    JSON.stringify({
      ...rest,
      topic: rest.topic.replace(topic, '{t}'),
      ...(attachment === undefined ? {} : { attachment: shownAttachment(attachment, { id, url }) }),
      ...(actions === undefined
        ? {}
        : { actions: actions.map((each) => ({ ...each, id: undefined })) }),
    }),
  ) as Readonly<Record<string, unknown>>;
}

function shownAttachment(
  { expires, ...attachment }: NonNullable<Message['attachment']>,
  { id, url }: { readonly id: string; readonly url: string },
): Readonly<Record<string, unknown>> {
  return {
    ...attachment,
    ...(expires === undefined ? {} : { expires: 'soon' }),
    url: attachment.url.replace(url, '{url}').replace(id, '{id}'),
  };
}
