// Decisions of operators about groups of failures, as events of a system stream: resolved, ignored, and notes.

import type { Clock } from '../../foundation/clock.ts';
import { createIds } from '../../foundation/ids.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import type { EventStore } from '../../store/event-store.ts';
import { liveSystemStream, systemEvent } from '../../store/system-stream.ts';

export const failureStates = ['open', 'resolved', 'ignored'] as const;

export type FailureState = (typeof failureStates)[number];

export interface FailureDecision {
  readonly fingerprint: string;
  readonly state: FailureState;
  /** Free text of the operators. */
  readonly note: string;
  readonly by: string;
  /** ISO 8601. */
  readonly at: string;
}

export interface FailureDecisions {
  /** The last decision about each group, by its fingerprint; groups that were decided long ago are forgotten. */
  all(): Promise<ReadonlyMap<string, FailureDecision>>;
  /** A field that is not given stays as it is. */
  decide(
    fingerprint: string,
    change: {
      readonly by: string;
      readonly state?: FailureState | undefined;
      readonly note?: string | undefined;
    },
  ): Promise<FailureDecision>;
}

const stream = '$millrace-failures';
const decidedType = '$failure-decided';
/** Events that are kept and read. */
const eventsMax = 2_000;

export function failureDecisions(
  store: EventStore,
  { clock, observer = silentObserver }: { readonly clock: Clock; readonly observer?: Observer },
): FailureDecisions {
  const ids = createIds({ clock });

  async function all(): Promise<ReadonlyMap<string, FailureDecision>> {
    const name = await liveSystemStream(store, stream, observer);
    const found = new Map<string, FailureDecision>();
    const events = store.readStream(name, { direction: 'backwards', limit: eventsMax });
    for await (const { type, payload } of events) {
      const decision = payload as FailureDecision;
      if (type !== decidedType || found.has(decision.fingerprint)) continue;
      found.set(decision.fingerprint, decision);
    }
    return found;
  }

  return {
    all,
    async decide(fingerprint, { by, state, note }) {
      const before = (await all()).get(fingerprint);
      const decision: FailureDecision = {
        fingerprint,
        state: state ?? before?.state ?? 'open',
        note: note ?? before?.note ?? '',
        by,
        // A note does not prolong an earlier decision.
        at:
          state === undefined && before !== undefined
            ? before.at
            : new Date(clock.now()).toISOString(),
      };
      const name = await liveSystemStream(store, stream, observer);
      if ((await store.streamInfo(name)) === undefined) {
        await store.setStreamMetadata(name, { maxCount: eventsMax }, { system: true });
      }
      const event = systemEvent(name, decidedType, {
        eventId: ids.next(),
        payload: decision,
        clock,
      });
      await store.append(name, [event], { system: true });
      return decision;
    },
  };
}
