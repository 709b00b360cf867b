// A fake of Slack's Web API over real HTTP: it stores messages and misbehaves on demand. It implements the part of the
// protocol that is used here (form or JSON in, `ok` or an error code out, metadata on request).

import type { ServerResponse } from 'node:http';
import { startHttpReceiver, type HttpReceiver, type ReceivedRequest } from './http-receiver.ts';

export interface FakeSlackMessage {
  readonly channel: string;
  readonly ts: string;
  readonly text: string;
  readonly blocks?: readonly object[] | undefined;
  readonly thread_ts?: string | undefined;
  readonly metadata?: {
    readonly event_type: string;
    readonly event_payload: Readonly<Record<string, unknown>>;
  };
}

/** The behaviour of one call. */
export type FakeSlackBehaviour =
  | 'ok'
  /** Accepts the call and closes the connection without a response. */
  | 'drop-after'
  /** Closes the connection without doing anything. */
  | 'drop-before'
  /** Accepts the call at once and responds when this promise resolves. */
  | { readonly answerAfter: Promise<unknown> }
  /** An error code of Slack. */
  | { readonly error: string }
  /** Any other response: an error page of a gateway, a rate limit. */
  | {
      readonly status: number;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
      /** Whether the message is posted anyway. */
      readonly accepts?: boolean;
    };

export interface FakeSlack extends AsyncDisposable {
  /** The URL for clients; ends in `/api/`. */
  readonly apiUrl: string;
  /** All posted messages, in the order of arrival. */
  readonly messages: readonly FakeSlackMessage[];
  /** The called methods. */
  readonly calls: readonly string[];
  readonly requests: HttpReceiver['requests'];
  /** Sets the behaviours of the next calls of a method; later calls are `ok`. */
  behave(method: string, ...behaviours: readonly FakeSlackBehaviour[]): void;
}

export interface FakeSlackOptions {
  /** The valid tokens. Default: any. */
  readonly tokens?: readonly string[] | undefined;
  /** The timestamp of the first message. Default: now. */
  readonly startMs?: number | undefined;
}

/**
 * Starts a fake of Slack for a test.
 *
 * @example
 * import { startFakeSlack } from 'millrace/testing';
 *
 * await using slack = await startFakeSlack({ tokens: ['xoxb-test'] });
 * slack.behave('chat.postMessage', 'drop-after', { status: 429, headers: { 'retry-after': '1' } });
 * console.log(slack.apiUrl, slack.messages.length);
 */
export async function startFakeSlack(options: FakeSlackOptions = {}): Promise<FakeSlack> {
  const { tokens, startMs = Date.now() } = options;
  const messages: FakeSlackMessage[] = [];
  const calls: string[] = [];
  const planned = new Map<string, FakeSlackBehaviour[]>();

  function post(fields: Fields): object {
    const seconds = Math.floor(startMs / 1_000) + Math.floor(messages.length / 1_000);
    const ts = `${seconds}.${String(messages.length % 1_000).padStart(6, '0')}`;
    const { channel, text, blocks, thread_ts: thread, metadata } = fields;
    if (typeof channel !== 'string' || channel === '') return failure('channel_not_found');
    if (typeof text !== 'string' || text === '') return failure('no_text');
    const message = {
      channel: channel.replace(/^[UW]/, 'D'),
      ts,
      text,
      ...(blocks === undefined ? {} : { blocks }),
      ...(thread === undefined ? {} : { thread_ts: thread }),
      ...(metadata === undefined ? {} : { metadata }),
    } as FakeSlackMessage;
    messages.push(message);
    return { ok: true, channel: message.channel, ts, message };
  }

  function history(fields: Fields, thread: unknown): object {
    const {
      channel,
      oldest = '0',
      limit = '100',
      cursor = '0',
      include_all_metadata: all,
    } = fields;
    if (/^[UW]/.test(String(channel))) return failure('channel_not_found');
    const own = messages
      .filter((each) => each.channel === channel && each.thread_ts === thread)
      .filter(({ ts }) => Number(ts) >= Number(oldest))
      .toReversed();
    const from = Number(cursor);
    const to = from + Number(limit);
    const shown = own
      .slice(from, to)
      .map(({ metadata, ...rest }) =>
        String(all) === 'true' && metadata !== undefined ? { ...rest, metadata } : rest,
      );
    const next = to < own.length ? String(to) : '';
    return {
      ok: true,
      messages: shown,
      has_more: next !== '',
      response_metadata: { next_cursor: next },
    };
  }

  function act(method: string, fields: Fields): object {
    switch (method) {
      case 'auth.test':
        return { ok: true, team: 'Fake', team_id: 'T1', user_id: 'U1', bot_id: 'B1' };
      case 'chat.postMessage':
        return post(fields);
      case 'conversations.history':
        return history(fields, undefined);
      case 'conversations.replies':
        return history(fields, fields['ts']);
      case 'conversations.open':
        return { ok: true, channel: { id: String(fields['users']).replace(/^[UW]/, 'D') } };
      default:
        return failure('unknown_method');
    }
  }

  function respond(request: ReceivedRequest, response: ServerResponse): void {
    const method = request.path.replace(/^\/api\//, '').replace(/\?.*$/s, '');
    calls.push(method);
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    if (token === undefined) return say(response, failure('not_authed'));
    if (tokens !== undefined && !tokens.includes(token))
      return say(response, failure('invalid_auth'));
    const behaviour = planned.get(method)?.shift() ?? 'ok';
    const fields = fieldsOf(request);
    if (behaviour === 'ok') return say(response, act(method, fields));
    if (behaviour === 'drop-before') return void response.destroy();
    if (behaviour === 'drop-after') {
      act(method, fields);
      return void response.destroy();
    }
    if ('answerAfter' in behaviour) {
      const done = act(method, fields);
      void behaviour.answerAfter.then(() => say(response, done));
      return undefined;
    }
    if ('error' in behaviour) return say(response, failure(behaviour.error));
    if (behaviour.accepts === true) act(method, fields);
    response.writeHead(behaviour.status, behaviour.headers).end(behaviour.body ?? '');
    return undefined;
  }

  const receiver = await startHttpReceiver({ answer: respond });
  return {
    apiUrl: `${receiver.url}/api/`,
    messages,
    calls,
    requests: receiver.requests,
    behave(method, ...behaviours) {
      planned.set(method, [...behaviours]);
    },
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** Form fields with objects as JSON, or a JSON body. */
function fieldsOf({ headers, body }: ReceivedRequest): Fields {
  if (headers['content-type']?.includes('json') === true) return JSON.parse(body) as Fields;
  const structures = new Set(['blocks', 'metadata']);
  return Object.fromEntries(
    [...new URLSearchParams(body)].map(([name, text]) => [
      name,
      structures.has(name) ? (JSON.parse(text) as unknown) : text,
    ]),
  );
}

function failure(error: string): object {
  return { ok: false, error };
}

function say(response: ServerResponse, body: object): void {
  if (response.destroyed) return;
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
