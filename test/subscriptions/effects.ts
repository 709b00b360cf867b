// What handlers left in the database, and whether that is each event once, in the order of its stream.

export interface Effect {
  readonly eventId: string;
  readonly stream: string;
  readonly revision: number;
  readonly worker: string;
  /** With which it owned the shard. */
  readonly token: number;
}

interface Expected {
  readonly eventId: string;
  readonly stream: string;
  readonly revision: number;
}

/** `effects` in the order in which they were had. Empty: all is well. */
export function checkEffects(expected: readonly Expected[], effects: readonly Effect[]): string[] {
  const problems: string[] = [];
  const had = new Map<string, Effect>();
  const last = new Map<string, Effect>();
  for (const effect of effects) {
    const before = had.get(effect.eventId);
    if (before !== undefined) {
      problems.push(`repeated: ${show(effect)} by ${before.worker} and ${effect.worker}`);
    }
    had.set(effect.eventId, effect);
    const previous = last.get(effect.stream);
    if (previous !== undefined && previous.revision >= effect.revision) {
      problems.push(`out of order: ${show(effect)} after ${show(previous)}`);
    }
    // Told by itself: where repeats are refused anyway, they would hide that nobody was fenced off.
    if (previous !== undefined && previous.token > effect.token) {
      problems.push(`stale owner: ${show(effect)} by ${effect.worker} after ${previous.worker}`);
    }
    last.set(effect.stream, effect);
  }
  for (const event of expected) {
    if (!had.delete(event.eventId)) problems.push(`lost: ${show(event)}`);
  }
  for (const effect of had.values()) problems.push(`nobody asked for: ${show(effect)}`);
  return problems;
}

function show({ eventId, stream, revision }: Expected): string {
  return `${eventId} (${stream} @${revision})`;
}
