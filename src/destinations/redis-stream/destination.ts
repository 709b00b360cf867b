// Delivers messages to Redis streams. Streams have no deduplication, so a script stores the idempotency key
// together with the entry, and a repeated attempt returns the id of the first entry.

import { occurredAtOf, type DeliveryMessage } from '../../delivery/delivery-message.ts';
import { errorText, type DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { Destination } from '../../delivery/destination.ts';
import { untilAborted } from '../../delivery/until-aborted.ts';
import { parseRedisKey } from '../../contracts/redis-keys.ts';
import { subjectRootDefault } from '../../contracts/subjects.ts';
import { cleanText } from '../../foundation/error-text.ts';
import { hasCode } from '../../foundation/error.ts';
import {
  connectRedis,
  type RedisClient,
  type RedisConnectionOptions,
} from '../../engines/redis/connection/connection.ts';
import { loadScript } from '../../engines/redis/connection/script.ts';

export interface RedisStreamOptions extends RedisConnectionOptions {
  /**
   * The key of the stream, or a function from a message to that key. A message is dead if the function returns an empty
   * key or a key of Millrace.
   */
  readonly stream: string | ((message: DeliveryMessage) => string);
  /** How long a key is remembered; must exceed the retry period of the outbox. Default: 24 h. */
  readonly dedupeMs?: number | undefined;
  /** Trims the stream to about this many entries. Default: no trimming, as a slow consumer would lose entries. */
  readonly entriesMax?: number | undefined;
}

export const redisStreamLimits = { dedupeMs: 24 * 60 * 60_000 } as const;

const addOnce = loadScript(new URL('add-once.lua', import.meta.url));

/**
 * A destination that adds messages to Redis streams, each once within `dedupeMs`; by URL or with your client,
 * on one server or a cluster. The server's `appendfsync` decides whether an acknowledged message
 * survives a crash.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { redisStreamDestination } from 'millrace/destinations/redis-stream';
 *
 * await using redis = await redisStreamDestination('redis://localhost:6379', {
 *   stream: ({ tenantId = 'core' }) => `app:{${tenantId}}:payments:stream`,
 * });
 * const { deliver } = createDelivery({ destinations: { 'redis:payments': redis } });
 */
export async function redisStreamDestination(
  target: string | RedisClient,
  options: RedisStreamOptions,
): Promise<Destination & AsyncDisposable> {
  const { stream, dedupeMs = redisStreamLimits.dedupeMs, entriesMax } = options;
  const connection = await connectRedis(target, options);

  const send: Destination = async (message, { idempotencyKey, signal }) => {
    signal.throwIfAborted();
    const key = typeof stream === 'string' ? stream : stream(message);
    if (key !== stream && !isOwnKey(key)) {
      return { kind: 'dead', error: `the stream key '${cleanText(key, 100)}' is not allowed` };
    }
    const values = [dedupeMs, entriesMax ?? '', ...fieldsOf(message, idempotencyKey)];
    const work = connection
      .run(addOnce, [key, dedupeKey(key, idempotencyKey)], values)
      .then((id): DeliveryOutcome => ({ kind: 'sent', receipt: String(id) }), outcomeOfRedis);
    return untilAborted(work, signal);
  };
  return Object.assign(send, {
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  });
}

/** The first words of keys that Millrace writes, except those of documents (`app:`). */
const millraceRoots: ReadonlySet<string> = new Set([
  '',
  'aggregate',
  'bull',
  'checkpoint',
  'job',
  'lease',
  'millrace',
  'mq',
  'read-model',
  subjectRootDefault,
]);

/** Parts of the key may come from tenants, for example the type of an event. */
function isOwnKey(key: string): boolean {
  if (millraceRoots.has(/^\{?([^:.}]*)/.exec(key)?.[1] ?? '')) return false;
  try {
    parseRedisKey(key);
  } catch {
    return true;
  }
  return false;
}

/** The dedupe key shares the cluster slot of the stream, because one script writes both. */
function dedupeKey(stream: string, idempotencyKey: string): string {
  const hasTag = /\{[^}]+\}/.test(stream);
  return `${hasTag ? stream : `{${stream}}`}:dedupe:${idempotencyKey}`;
}

/** Names and values of the entry. */
function fieldsOf(message: DeliveryMessage, idempotencyKey: string): readonly string[] {
  const { headers, tenantId, correlationId } = message;
  const fields = {
    id: idempotencyKey,
    type: message.eventType,
    stream: message.sourceStreamId,
    payload: JSON.stringify(message.payload),
    headers: headers === undefined ? undefined : JSON.stringify(headers),
    tenantId,
    correlationId,
    occurredAt: occurredAtOf(message),
  };
  return Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [name, value],
  );
}

/** Always retries, because no error of Redis is caused by the message: wrong password, full server, wrong key type. */
function outcomeOfRedis(error: unknown): DeliveryOutcome {
  const isClosed = hasCode(error, 'STORE_CLOSED');
  return { kind: 'retry', error: errorText(error), ...(isClosed ? {} : { ambiguous: true }) };
}
