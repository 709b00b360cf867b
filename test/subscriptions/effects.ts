// The effects of handlers in the database, and the check that each event has one, in stream order.

export interface Effect {
  readonly eventId: string;
  readonly stream: string;
  readonly revision: number;
  readonly worker: string;
  /** The fencing token with which the worker owned the shard. */
  readonly token: number;
}

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
