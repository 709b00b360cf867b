// Messages to Redis streams. A stream dedupes nothing by itself: a script notes the key beside it and
// adds the entry in one step, so that a repeated attempt finds the entry of the first.

import { occurredAtOf, type DeliveryMessage } from '../../delivery/delivery-message.ts';
import { errorText, type DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { Destination } from '../../delivery/destination.ts';
import { untilAborted } from '../../delivery/until-aborted.ts';
import { hasCode } from '../../foundation/error.ts';
import { connectRedis, type RedisClient, type RedisConnectionOptions } from './redis-connection.ts';
import { redisScript } from './redis-script.ts';

export interface RedisStreamOptions extends RedisConnectionOptions {
  /** The stream's key, or who knows it for a message. */
  readonly stream: string | ((message: DeliveryMessage) => string);
  /** How long a key is remembered: longer than the outbox tries. Default: 24 h. */
  readonly dedupeMs?: number;
  /** Trims to about this many entries. Default: none; a consumer that is late would lose some. */
  readonly entriesMax?: number;
}

export const redisStreamLimits = { dedupeMs: 24 * 60 * 60_000 } as const;

const addOnce = redisScript(`local known = redis.call('GET', KEYS[2])
if known then return known end
local fields = {}
for at = 3, #ARGV do fields[#fields + 1] = ARGV[at] end
local id
if ARGV[2] == '' then
  id = redis.call('XADD', KEYS[1], '*', unpack(fields))
else
  id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', unpack(fields))
end
redis.call('SET', KEYS[2], id, 'PX', ARGV[1])
return id`);

/**
 * A destination that adds messages to Redis streams, each once within `dedupeMs`; by URL or with a
 * client of your own, also of a cluster. What an acknowledgement is worth is decided by the server's
 * `appendfsync`.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { redisStreamDestination } from 'millrace/adapters/redis';
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
    const fields = Object.entries(fieldsOf(message, idempotencyKey)).flat();
    const values = [dedupeMs, entriesMax ?? '', ...fields];
    const work = connection
      .run(addOnce, [key, dedupeKey(key, idempotencyKey)], values)
      .then((id): DeliveryOutcome => ({ kind: 'sent', receipt: String(id) }), outcomeOfRedis);
    return untilAborted(work, signal);
  };
  return Object.assign(send, {
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  });
}

/** In the stream's slot of a cluster, as the script touches both. */
function dedupeKey(stream: string, idempotencyKey: string): string {
  const hasTag = /\{[^}]+\}/.test(stream);
  return `${hasTag ? stream : `{${stream}}`}:dedupe:${idempotencyKey}`;
}

function fieldsOf(message: DeliveryMessage, idempotencyKey: string): Record<string, string> {
  const { headers, tenantId, correlationId } = message;
  const occurredAt = occurredAtOf(message);
  return {
    id: idempotencyKey,
    type: message.eventType,
    stream: message.sourceStreamId,
    payload: JSON.stringify(message.payload),
    ...(headers === undefined ? {} : { headers: JSON.stringify(headers) }),
    ...(tenantId === undefined ? {} : { tenantId }),
    ...(correlationId === undefined ? {} : { correlationId }),
    ...(occurredAt === undefined ? {} : { occurredAt }),
  };
}

/** Whatever Redis says, it is not about the message: a wrong password, a full server, a wrong key. */
function outcomeOfRedis(error: unknown): DeliveryOutcome {
  const isClosed = hasCode(error, 'STORE_CLOSED');
  return { kind: 'retry', error: errorText(error), ...(isClosed ? {} : { ambiguous: true }) };
}
