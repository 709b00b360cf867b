// Stores jobs: one script for each type and portion.

import type { EnqueueEntry, EnqueueOutcome, TaskEngine } from '../../tasks/task-engine.ts';
import type { ScriptValue } from './redis-bus-calls.ts';
import { runRegistered, type RedisTaskContext } from './redis-task-context.ts';
import { packFixed, packRecord } from './redis-task-head.ts';
import { taskScripts } from './redis-task-scripts.ts';
import { signalText } from './redis-task-signals.ts';
import { suffixOf, type TypePlace } from './redis-task-space.ts';

/** So much at most goes to a worker by message. */
const handedCharsMax = 64_000;
/** So much in one script, so that others are not kept waiting. */
const portionMax = { entries: 100, bytes: 4_000_000 } as const;

interface Placed {
  readonly entry: EnqueueEntry;
  /** Its place in the caller's list. */
  readonly at: number;
}

export function createTaskEnqueue(
  context: RedisTaskContext,
  onStored: (type: string) => void,
): TaskEngine['enqueue'] {
  const { calls, space } = context;
  const { bus } = space;

  async function store(place: TypePlace, portion: readonly Placed[], nowMs: number) {
    const { type, base, never, queue } = place;
    const values: ScriptValue[] = [];
    for (const { entry } of portion) {
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
    const hands = mayBeHanded(portion) ? context.hands : undefined;
    const places = [hands === undefined ? '' : space.hands, space.workers, type];
    return runRegistered(context, place, async (isRegistered) => {
      const head = [nowMs, bus.channel, registryKey, queue.subject, isRegistered ? 1 : 0];
      const keys = [base, never, queue.key, queue.mark];
      const answer = await calls.runText(taskScripts.enqueue, keys, [
        ...head,
        ...places,
        ...values,
      ]);
      return answer as readonly (string | number)[] | null;
    });
  }

  return async (entries, nowMs) => {
    const outcomes: EnqueueOutcome[] = Array.from({ length: entries.length });
    const placed = entries.map((entry, at): Placed => ({ entry, at }));
    const byType = Map.groupBy(placed, ({ entry }) => entry.head.type);
    await Promise.all(
      [...byType].map(async ([type, all]) => {
        const place = space.place(type);
        const answers = await Promise.all(
          portionsOf(all).map(async (portion) => {
            const answer = await store(place, portion, nowMs);
            for (const [n, { at }] of portion.entries()) outcomes[at] = outcomeOf(type, answer[n]);
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

/** One that comes alone, now: of several, each worker had better ask for as many as it has room for. */
function mayBeHanded([first, ...others]: readonly Placed[]): boolean {
  if (first === undefined || others.length > 0) return false;
  const { head, fields } = first.entry;
  return head.state === 'queued' && (fields['payload']?.length ?? 0) <= handedCharsMax;
}

function portionsOf(placed: readonly Placed[]): Placed[][] {
  const portions: Placed[][] = [];
  let chars = 0;
  for (const each of placed) {
    const size = each.entry.fields['payload']?.length ?? 0;
    const last = portions.at(-1);
    chars += size;
    if (last === undefined || last.length === portionMax.entries || chars > portionMax.bytes) {
      portions.push([each]);
      chars = size;
    } else last.push(each);
  }
  return portions;
}
