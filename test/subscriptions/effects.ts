// The effects of handlers in the database, and the check that each event has one, in stream order.

export interface Effect {
  readonly eventId: string;
  readonly stream: string;
  readonly revision: number;
  readonly worker: string;
  /** The fencing token with which the worker owned the shard. */
  readonly token: number;
}

/** In Redis: the effects in their order, the events that have one, and the highest token of each stream. */
export const effectKeys = { list: 'effects', events: 'effects:events', tokens: 'effects:tokens' };

/** An effect of a receiver that takes an event once and refuses an outdated owner. Returns 0 if it refused. */
export const effectScript = `
local eventId, stream, token, effect = unpack(ARGV)
if redis.call('SISMEMBER', KEYS[2], eventId) == 1 then return 1 end
if tonumber(redis.call('HGET', KEYS[3], stream) or '0') > tonumber(token) then return 0 end
redis.call('HSET', KEYS[3], stream, token)
redis.call('SADD', KEYS[2], eventId)
redis.call('RPUSH', KEYS[1], effect)
return 1`;

interface Expected {
  readonly eventId: string;
  readonly stream: string;
  readonly revision: number;
}

/** Returns the problems of `effects`, which are in the order of their commits. */
export function checkEffects(expected: readonly Expected[], effects: readonly Effect[]): string[] {
  const problems: string[] = [];
  const byEvent = new Map<string, Effect>();
  const last = new Map<string, Effect>();
  for (const effect of effects) {
    const before = byEvent.get(effect.eventId);
    if (before !== undefined) {
      problems.push(`repeated: ${show(effect)} by ${before.worker} and ${effect.worker}`);
    }
    byEvent.set(effect.eventId, effect);
    const previous = last.get(effect.stream);
    if (previous !== undefined && previous.revision >= effect.revision) {
      problems.push(`out of order: ${show(effect)} after ${show(previous)}`);
    }
    // Reported separately: a repeat that is rejected anyway would hide a missing fence.
    if (previous !== undefined && previous.token > effect.token) {
      problems.push(`stale owner: ${show(effect)} by ${effect.worker} after ${previous.worker}`);
    }
    last.set(effect.stream, effect);
  }
  for (const event of expected) {
    if (!byEvent.delete(event.eventId)) problems.push(`lost: ${show(event)}`);
  }
  for (const effect of byEvent.values()) problems.push(`unexpected: ${show(effect)}`);
  return problems;
}

function show({ eventId, stream, revision }: Expected): string {
  return `${eventId} (${stream} @${revision})`;
}
