// JetStream as the bus speaks to it: everything that awaits an answer goes over one inbox, so that a
// batch of a thousand costs a thousand small messages and one promise.

import type { Msg, MsgHdrs, NatsConnection as Driver } from '@nats-io/transport-node';
import { hasCode, MillraceError } from '../../../foundation/error.ts';
import { loadDriver } from '../../../foundation/load-driver.ts';
import { connectNats, natsDefaults, type NatsConnectionOptions } from './connection.ts';

export interface Outgoing {
  readonly subject: string;
  readonly data?: Uint8Array | string | undefined;
  readonly headers?: MsgHdrs | undefined;
}

/** What is sent to any `<subject>.<token>` goes to its listener until it is closed. */
export interface Inbox {
  readonly subject: string;
  /** Nothing more is sent here; resolves when what was on its way has arrived. */
  close(): Promise<void>;
}

export interface JetStreamWire extends AsyncDisposable {
  readonly timeoutMs: number;
  /** Sends in this order. All are answered, or it rejects: `BUS_UNAVAILABLE`, and some may be done. */
  exchange(messages: readonly Outgoing[]): Promise<readonly Msg[]>;
  /** In this order, at once; answers, if any, go to `replyTo`. */
  send(messages: readonly Outgoing[], replyTo?: string): Promise<void>;
  /** `lost`: the connection broke. */
  listen(onMessage: (message: Msg) => void, lost: (error: MillraceError) => void): Promise<Inbox>;
  headers(): MsgHdrs;
  /** A question to the API of JetStream, such as `STREAM.INFO.bus`. */
  ask<T>(verb: string, body?: object): Promise<T>;
  askAll<T>(questions: readonly { readonly verb: string; readonly body: object }[]): Promise<T[]>;
}

/** By what JetStream calls `err_code`. */
export const refusals = {
  consumerNotFound: 10_014,
  messageNotFound: 10_037,
  /** Of a message that is to be deleted. */
  sequenceNotFound: 10_043,
  deleteFailed: 10_057,
  streamNameInUse: 10_058,
  streamNotFound: 10_059,
  subjectsOverlap: 10_065,
  /** Of a compare-and-set that came too late. */
  wrongLastSequence: 10_071,
} as const;

export function isRefused(error: unknown, ...codes: readonly number[]): boolean {
  return error instanceof MillraceError && codes.some((code) => code === error.details['errCode']);
}

const noResponders = 503;
/** Questions at once; a newer server turns away who asks thousands. */
const askedAtOnce = 250;

interface Exchange {
  readonly answers: Msg[];
  readonly done: PromiseWithResolvers<readonly Msg[]>;
  left: number;
}

export const isUnanswered = (message: Msg): boolean => message.headers?.code === noResponders;

export async function openJetStreamWire(
  target: string | Driver,
  options: NatsConnectionOptions,
): Promise<JetStreamWire> {
  const { timeoutMs = natsDefaults.timeoutMs } = options;
  const { createInbox, headers } = await loadDriver(
    '@nats-io/transport-node',
    () => import('@nats-io/transport-node'),
  );
  const exchanges = new Map<string, { readonly of: Exchange; readonly at: number }>();
  const listeners = new Set<(error: MillraceError) => void>();
  let lastToken = 0;

  function onAway(): void {
    const error = busUnavailable('the connection broke');
    for (const each of exchanges.values()) each.of.done.reject(error);
    exchanges.clear();
    for (const lost of listeners) lost(error);
  }

  const connection = await connectNats(target, { ...options, onAway }).catch(rethrow);
  const inbox = createInbox();
  const { driver, subscription } = await withDriver(async (opened) => ({
    driver: opened,
    subscription: opened.subscribe(`${inbox}.*`, { callback: (_, message) => settle(message) }),
  }));

  function settle(message: Msg): void {
    const token = message.subject.slice(inbox.length + 1);
    const found = exchanges.get(token);
    if (found === undefined) return;
    exchanges.delete(token);
    const { of: under, at } = found;
    under.answers[at] = message;
    under.left -= 1;
    if (under.left === 0) under.done.resolve(under.answers);
  }

  function withDriver<T>(call: (connected: Driver) => Promise<T>): Promise<T> {
    return connection.ask(call).catch(rethrow);
  }

  async function exchange(messages: readonly Outgoing[]): Promise<readonly Msg[]> {
    if (messages.length === 0) return [];
    const done = Promise.withResolvers<readonly Msg[]>();
    const under: Exchange = { answers: [], done, left: messages.length };
    const tokens: string[] = [];
    const timer = setTimeout(() => {
      done.reject(busUnavailable(`no answer within ${timeoutMs} ms`));
    }, timeoutMs);
    try {
      return await withDriver((connected) => {
        // In one turn of the event loop: a connection that breaks takes an end of them, never a middle.
        for (const [at, { subject, data, headers: told }] of messages.entries()) {
          lastToken += 1;
          const token = lastToken.toString(36);
          tokens.push(token);
          exchanges.set(token, { of: under, at });
          connected.publish(subject, data, {
            reply: `${inbox}.${token}`,
            ...(told === undefined ? {} : { headers: told }),
          });
        }
        return done.promise;
      });
    } finally {
      clearTimeout(timer);
      if (under.left > 0) for (const token of tokens) exchanges.delete(token);
    }
  }

  async function askAll<T>(
    questions: readonly { readonly verb: string; readonly body: object }[],
  ): Promise<T[]> {
    const answers: T[] = [];
    for (let from = 0; from < questions.length; from += askedAtOnce) {
      const asked = questions.slice(from, from + askedAtOnce);
      const messages = await exchange(
        asked.map(({ verb, body }) => ({
          subject: `$JS.API.${verb}`,
          data: JSON.stringify(body),
        })),
      );
      for (const message of messages) {
        if (isUnanswered(message)) throw busUnavailable('JetStream is not there, or not enabled');
        answers.push(message.json<T>());
      }
    }
    return answers;
  }

  return {
    timeoutMs,
    exchange,
    headers,
    send: (messages, replyTo) =>
      withDriver(async (connected) => {
        const reply = replyTo === undefined ? {} : { reply: replyTo };
        for (const { subject, data } of messages) connected.publish(subject, data, reply);
      }),
    listen: (onMessage, lost) =>
      withDriver(async (connected) => {
        const subject = createInbox();
        const own = connected.subscribe(`${subject}.*`, {
          callback: (_, message) => onMessage(message),
        });
        listeners.add(lost);
        return {
          subject,
          async close() {
            listeners.delete(lost);
            // Fails when the connection breaks or closes: then nothing is on its way any more.
            await own.drain().catch(() => undefined);
          },
        };
      }),
    askAll,
    async ask<T>(verb: string, body: object = {}) {
      const [answer] = await askAll<T & { readonly error?: ApiError }>([{ verb, body }]);
      if (answer?.error === undefined) return answer as T;
      throw refusalOf(answer.error);
    },
    async [Symbol.asyncDispose]() {
      onAway();
      if (!driver.isClosed()) subscription.unsubscribe();
      await connection[Symbol.asyncDispose]();
    },
  };
}

export interface ApiError {
  readonly code?: number;
  readonly err_code?: number;
  readonly description?: string;
}

/** A fault of the server's (5xx) is worth another try; the rest is for the caller to tell apart. */
export function refusalOf({ code = 0, err_code = 0, description = '' }: ApiError): MillraceError {
  return new MillraceError('BUS_UNAVAILABLE', `NATS did not do it: ${description}`, {
    retryable: code >= 500,
    details: { reason: description, errCode: err_code },
  });
}

export function busUnavailable(reason: string, cause?: unknown): MillraceError {
  return new MillraceError('BUS_UNAVAILABLE', `NATS did not do it: ${reason}`, {
    cause,
    details: { reason },
  });
}

/** The connection speaks of a store; the bus has its own codes. */
function rethrow(error: unknown): never {
  if (hasCode(error, 'STORE_CLOSED')) throw new MillraceError('BUS_CLOSED', 'the bus was closed');
  if (!hasCode(error, 'STORE_UNAVAILABLE')) throw error;
  throw new MillraceError('BUS_UNAVAILABLE', error.message, {
    cause: error.cause,
    retryable: error.retryable,
    details: error.details,
  });
}
