// Enqueues jobs, with one script call for each type and batch.

import type { EnqueueEntry, EnqueueOutcome, TaskEngine } from '../../../tasks/task-engine.ts';
import { batchesOf } from '../../../foundation/async/batches-of.ts';
import { batchMax } from '../bus/append.ts';
import { forEachGroup } from '../connection/engine.ts';
import type { ScriptValue } from '../connection/script.ts';
import { runRegistered, taskScripts, type RedisTaskContext } from './context.ts';
import { suffixOf, type TypeKeys } from './keyspace.ts';
import { packFixed, packRecord } from './record.ts';
import { signalText } from './signals.ts';

/** Jobs of one script call, which blocks the server. */
const jobsMax = 100;

export function createTaskEnqueue(
  context: RedisTaskContext,
  onStored: (type: string) => void,
): TaskEngine['enqueue'] {
  const { redis, keyspace } = context;
  const { bus } = keyspace;

  async function store(typeKeys: TypeKeys, batch: readonly EnqueueEntry[], nowMs: number) {
    const { base, never, queue } = typeKeys;
    const values: ScriptValue[] = [];
    for (const { head, fields, dedupe, signals } of batch) {
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
    const head = [nowMs, bus.channel, registryKey, queue.subject, keyspace.workerChannel];
    return runRegistered(context, typeKeys, async (isRegistered) => {
      const keys = [base, never, queue.key, queue.mark];
      const rest = [isRegistered ? 1 : 0, ...values];
      const reply = await redis.run(taskScripts.enqueue, keys, [...head, ...rest]);
      return reply as readonly (string | number)[] | null;
    });
  }

  return (entries, nowMs) =>
    forEachGroup(
      entries,
      ({ head }) => head.type,
      async (own, type) => {
        const limits = { countMax: jobsMax, sizeMax: batchMax.sizeMax, sizeOf: payloadChars };
        const batches = batchesOf(own, limits);
        const typeKeys = keyspace.typeKeys(type);
        const cells = await Promise.all(batches.map((batch) => store(typeKeys, batch, nowMs)));
        if (cells.flat().includes(1)) onStored(type);
        return cells.flat().map((cell) => outcomeOf(type, cell));
      },
    );
}

function outcomeOf(type: string, cell: string | number): EnqueueOutcome {
  if (cell === 1) return { kind: 'enqueued' };
  return typeof cell === 'string'
    ? { kind: 'exists', id: `${type}.${cell}` }
    : { kind: 'draining' };
}

function payloadChars({ fields }: EnqueueEntry): number {
  return fields['payload']?.length ?? 0;
}
