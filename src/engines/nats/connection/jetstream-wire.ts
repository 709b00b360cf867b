// The JetStream API for all roles. All requests share one inbox, so a batch of a thousand requests costs a
// thousand small messages and one promise.

import type { Msg, MsgHdrs, NatsConnection as Driver } from '@nats-io/transport-node';
import { batchesOf } from '../../../foundation/async/batches-of.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { loadDriver } from '../../../foundation/load-driver.ts';
import {
  connectNats,
  natsDefaults,
  natsUnavailable,
  type NatsConnectionOptions,
} from './connection.ts';

export interface Outgoing {
  readonly subject: string;
  readonly data?: Uint8Array | string | undefined;
  readonly headers?: MsgHdrs | undefined;
}

/** Messages to any `<subject>.<token>` go to its listener until it is closed. */
export interface Inbox {
  readonly subject: string;
  /** Unsubscribes; resolves when messages in flight have arrived. */
  close(): Promise<void>;
}

export interface JetStreamWire extends AsyncDisposable {
  readonly timeoutMs: number;
  /** Sends in this order and returns all replies, or rejects with `STORE_UNAVAILABLE`: some requests may have been done. */
  requestAll(messages: readonly Outgoing[]): Promise<readonly Msg[]>;
  /** Sends in this order without waiting; replies, if any, go to `replyTo`. */
  send(messages: readonly Outgoing[], replyTo?: string): Promise<void>;
  listen(onMessage: (message: Msg) => void, onLost: (error: MillraceError) => void): Promise<Inbox>;
  headers(): MsgHdrs;
  /** A request to the JetStream API, such as `STREAM.INFO.bus`. */
  request<T>(verb: string, body?: object): Promise<T>;
  /** All consumers of a list that the API returns in pages; none if the stream does not exist. */
  consumers<T>(verb: 'NAMES' | 'LIST', stream: string): Promise<readonly T[]>;
  /** A message by `seq` or subject; undefined: it does not exist. */
  getMessages(
    requests: readonly { readonly stream: string; readonly query: object }[],
  ): Promise<readonly (StoredMessage | undefined)[]>;
  /** Returns how many of the messages existed. */
  deleteMessages(stream: string, sequences: readonly number[]): Promise<number>;
}

export interface StoredMessage {
  readonly subject: string;
  readonly seq: number;
  readonly time: string;
  /** The content in base64. */
  readonly data?: string;
}

/** JetStream's `err_code`s. */
export const apiErrorCodes = {
  consumerNotFound: 10_014,
  messageNotFound: 10_037,
  /** The message to delete does not exist. */
  sequenceNotFound: 10_043,
  deleteFailed: 10_057,
  streamNameInUse: 10_058,
  streamNotFound: 10_059,
  subjectsOverlap: 10_065,
  /** A compare-and-set failed, because another process wrote first. */
  wrongLastSequence: 10_071,
} as const;

export function isApiError(error: unknown, ...codes: readonly number[]): boolean {
  return error instanceof MillraceError && codes.some((code) => code === error.details['errCode']);
}

/** Returns undefined if the requested consumer or stream does not exist. */
export async function unlessMissing<T>(request: () => Promise<T>): Promise<T | undefined> {
  try {
    return await request();
  } catch (error) {
    if (isApiError(error, apiErrorCodes.consumerNotFound, apiErrorCodes.streamNotFound))
      return undefined;
    throw error;
  }
}

/** The codes that mean that another process has deleted the message. */
const missingCodes: ReadonlySet<number | undefined> = new Set([
  apiErrorCodes.sequenceNotFound,
  apiErrorCodes.messageNotFound,
  apiErrorCodes.deleteFailed,
  apiErrorCodes.streamNotFound,
]);

const noResponders = 503;
/** The maximum number of requests in flight; newer servers reject thousands at once. */
const inFlightMax = 250;

interface RequestBatch {
  readonly replies: Msg[];
  readonly done: PromiseWithResolvers<readonly Msg[]>;
  left: number;
}

export const hasNoResponders = (message: Msg): boolean => message.headers?.code === noResponders;

export async function openJetStreamWire(
  target: string | Driver,
  options: NatsConnectionOptions,
): Promise<JetStreamWire> {
  const { timeoutMs = natsDefaults.timeoutMs } = options;
  const { createInbox, headers } = await loadDriver(
    '@nats-io/transport-node',
    () => import('@nats-io/transport-node'),
  );
  const pendingRequests = new Map<string, { readonly batch: RequestBatch; readonly at: number }>();
  const listeners = new Set<(error: MillraceError) => void>();
  let lastToken = 0;

  function onLost(): void {
    const error = natsUnavailable('connection lost');
    for (const { batch: pending } of pendingRequests.values()) pending.done.reject(error);
    pendingRequests.clear();
    for (const report of listeners) report(error);
  }

  const connection = await connectNats(target, { ...options, onLost });
  const inbox = createInbox();
  const { driver, subscription } = await connection.run(async (opened) => ({
    driver: opened,
    subscription: opened.subscribe(`${inbox}.*`, { callback: (_, message) => settle(message) }),
  }));

  function settle(message: Msg): void {
    const token = message.subject.slice(inbox.length + 1);
    const found = pendingRequests.get(token);
    if (found === undefined) return;
    pendingRequests.delete(token);
    const { batch: pending, at } = found;
    pending.replies[at] = message;
    pending.left -= 1;
    if (pending.left === 0) pending.done.resolve(pending.replies);
  }

  async function requestAll(messages: readonly Outgoing[]): Promise<readonly Msg[]> {
    if (messages.length === 0) return [];
    const done = Promise.withResolvers<readonly Msg[]>();
    const pending: RequestBatch = { replies: [], done, left: messages.length };
    const tokens: string[] = [];
    const timer = setTimeout(() => {
      done.reject(natsUnavailable(`no reply within ${timeoutMs} ms`));
    }, timeoutMs);
    try {
      return await connection.run((connected) => {
        // In one turn of the event loop: a lost connection cuts off the last messages, never some in between.
        for (const [at, { subject, data, headers: sent }] of messages.entries()) {
          lastToken += 1;
          const token = lastToken.toString(36);
          tokens.push(token);
          pendingRequests.set(token, { batch: pending, at });
          connected.publish(subject, data, {
            reply: `${inbox}.${token}`,
            ...(sent === undefined ? {} : { headers: sent }),
          });
        }
        return done.promise;
      });
    } finally {
      clearTimeout(timer);
      if (pending.left > 0) for (const token of tokens) pendingRequests.delete(token);
    }
  }

  async function apiRequestAll<T>(
    requests: readonly { readonly verb: string; readonly body: object }[],
  ): Promise<T[]> {
    const replies: T[] = [];
    for (const page of batchesOf(requests, { countMax: inFlightMax })) {
      const messages = await requestAll(
        page.map(({ verb, body }) => ({
          subject: `$JS.API.${verb}`,
          data: JSON.stringify(body),
        })),
      );
      for (const message of messages) {
        if (hasNoResponders(message))
          throw natsUnavailable('JetStream is not available or not enabled');
        replies.push(message.json<T>());
      }
    }
    return replies;
  }

  async function request<T>(verb: string, body: object = {}): Promise<T> {
    const [reply] = await apiRequestAll<T & { readonly error?: ApiError }>([{ verb, body }]);
    if (reply?.error === undefined) return reply as T;
    throw toApiError(reply.error);
  }

  return {
    timeoutMs,
    requestAll,
    headers,
    request,
    send: (messages, replyTo) =>
      connection.run(async (connected) => {
        const reply = replyTo === undefined ? {} : { reply: replyTo };
        for (const { subject, data } of messages) connected.publish(subject, data, reply);
      }),
    listen: (onMessage, reportLost) =>
      connection.run(async (connected) => {
        const subject = createInbox();
        const own = connected.subscribe(`${subject}.*`, {
          callback: (_, message) => onMessage(message),
        });
        listeners.add(reportLost);
        return {
          subject,
          async close() {
            listeners.delete(reportLost);
            // Fails if the connection is lost or closed: then no message is in flight.
            await own.drain().catch(() => undefined);
          },
        };
      }),
    async consumers<T>(verb: 'NAMES' | 'LIST', stream: string) {
      const items: T[] = [];
      for (;;) {
        const page = await unlessMissing(() =>
          request<{ readonly total: number; readonly consumers: readonly T[] | null }>(
            `CONSUMER.${verb}.${stream}`,
            { offset: items.length },
          ),
        );
        const found = page?.consumers ?? [];
        items.push(...found);
        if (found.length === 0 || items.length >= (page?.total ?? 0)) return items;
      }
    },
    async getMessages(requests) {
      const replies = await apiRequestAll<{
        readonly error?: ApiError;
        readonly message?: StoredMessage;
      }>(requests.map(({ stream, query }) => ({ verb: `STREAM.MSG.GET.${stream}`, body: query })));
      return replies.map(({ error, message }) => {
        if (error === undefined || error.err_code === apiErrorCodes.messageNotFound) return message;
        throw toApiError(error);
      });
    },
    async deleteMessages(stream, sequences) {
      const verb = `STREAM.MSG.DELETE.${stream}`;
      const replies = await apiRequestAll<{ readonly error?: ApiError }>(
        sequences.map((seq) => ({ verb, body: { seq, no_erase: true } })),
      );
      return replies.filter(({ error }) => {
        if (error === undefined) return true;
        if (missingCodes.has(error.err_code)) return false;
        throw toApiError(error);
      }).length;
    },
    async [Symbol.asyncDispose]() {
      onLost();
      if (!driver.isClosed()) subscription.unsubscribe();
      await connection[Symbol.asyncDispose]();
    },
  };
}

interface ConsumerConfig {
  readonly durable_name?: string;
  readonly filter_subject?: string;
  readonly ack_policy: string;
  readonly ack_wait: number;
  readonly max_ack_pending: number;
}

/** JetStream's reply about a consumer. */
export interface ConsumerInfo {
  readonly name: string;
  readonly stream_name: string;
  readonly config: ConsumerConfig;
  readonly delivered: { readonly stream_seq: number };
  readonly ack_floor: { readonly stream_seq: number };
  readonly num_ack_pending: number;
  readonly num_pending: number;
}

export interface ApiError {
  readonly code?: number;
  readonly err_code?: number;
  readonly description?: string;
}

/** A server error (5xx) is retryable; the caller distinguishes the others by `errCode`. */
function toApiError({ code = 0, err_code = 0, description = '' }: ApiError): MillraceError {
  return new MillraceError('STORE_UNAVAILABLE', `NATS request failed: ${description}`, {
    retryable: code >= 500,
    details: { reason: description, errCode: err_code },
  });
}
