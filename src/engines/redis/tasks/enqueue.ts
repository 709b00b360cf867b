// Enqueues jobs, with one script call for each type and batch.

import type { EnqueueEntry, EnqueueOutcome, TaskEngine } from '../../../tasks/task-engine.ts';
import { batchesOf } from '../bus/append.ts';
import type { ScriptValue } from '../connection/engine.ts';
import { runRegistered, taskScripts, type RedisTaskContext } from './context.ts';
import { suffixOf, type TypePlace } from './keyspace.ts';
import { packFixed, packRecord } from './record.ts';
import { signalText } from './signals.ts';

/** The largest payload of a direct hand-off. */
const handOffCharsMax = 64_000;
/** Jobs of one script call, which blocks the server. */
const jobsMax = 100;

interface Placed {
  readonly entry: EnqueueEntry;
  /** Index in the caller's list. */
  readonly at: number;
}

export function createTaskEnqueue(
  context: RedisTaskContext,
  onStored: (type: string) => void,
): TaskEngine['enqueue'] {
  const { calls, keyspace } = context;
  const { bus } = keyspace;

  async function store(place: TypePlace, batch: readonly Placed[], nowMs: number) {
    const { type, base, never, queue } = place;
    const values: ScriptValue[] = [];
    for (const { entry } of batch) {
      const { head, fields, dedupe, signals } = entry;
      const [signal] = signals;
      values.push(
        suffixOf(head.id),
        packRecord(head, fields),
        packFixed(fields),
        signal === undefined ? '' : signalText(signal, nowMs),
        dedupe?.key ?? '',
        dedupe?.untilMs ?? '',
        head.parentId,
      );
    }
    const registryKey = bus.isOneDomain ? bus.registry : '';
    const allowsHandOff = context.handOffs !== undefined && isHandOffCandidate(batch);
    const { workerChannel, offers, workers } = keyspace;
    const rest = [workerChannel, allowsHandOff ? offers : '', workers, type];
    return runRegistered(context, place, async (isRegistered) => {
      const head = [nowMs, bus.channel, registryKey, queue.subject, isRegistered ? 1 : 0];
      const keys = [base, never, queue.key, queue.mark];
      const answer = await calls.runText(taskScripts.enqueue, keys, [...head, ...rest, ...values]);
      return answer as readonly (string | number)[] | null;
    });
  }

  return async (entries, nowMs) => {
    const outcomes: EnqueueOutcome[] = Array.from({ length: entries.length });
    const placed = entries.map((entry, at): Placed => ({ entry, at }));
    const byType = Map.groupBy(placed, ({ entry }) => entry.head.type);
    await Promise.all(
      [...byType].map(async ([type, all]) => {
        const place = keyspace.place(type);
        const answers = await Promise.all(
          batchesOf(all, payloadChars, jobsMax).map(async (batch) => {
            const answer = await store(place, batch, nowMs);
            for (const [n, { at }] of batch.entries()) outcomes[at] = outcomeOf(type, answer[n]);
            return answer;
          }),
        );
        if (answers.flat().some((cell) => cell === 1)) onStored(type);
      }),
    );
    return outcomes;
  };
}

function outcomeOf(type: string, cell: string | number | undefined): EnqueueOutcome {
  if (cell === 1 || cell === 2) return { kind: 'enqueued' };
  return typeof cell === 'string'
    ? { kind: 'exists', id: `${type}.${cell}` }
    : { kind: 'draining' };
}

/** A single job that is due now; of several jobs, each worker claims as many as it has capacity for. */
function isHandOffCandidate([first, ...others]: readonly Placed[]): boolean {
  if (first === undefined || others.length > 0) return false;
  return first.entry.head.state === 'queued' && payloadChars(first) <= handOffCharsMax;
}

function payloadChars({ entry }: Placed): number {
  return entry.fields['payload']?.length ?? 0;
}
