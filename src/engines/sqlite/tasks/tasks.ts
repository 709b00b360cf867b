// Tasks in an SQLite file: no server, several processes. Writes go through the writer thread, which commits all waiting
// requests together; the bus messages of a job are in the same commit.

import { extname } from 'node:path';
import { createMessageCodec } from '../../../bus/message-codec.ts';
import { consumerGroups, createSubjects } from '../../../contracts/subjects.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { createWaiters } from '../../../foundation/async/waiters.ts';
import { claimUntilFound, type ClaimAnswer } from '../../../tasks/claim-until-found.ts';
import type { TasksOptions } from '../../../tasks/create-tasks.ts';
import type { ClaimRequest, ClaimWait, TaskEngine } from '../../../tasks/task-engine.ts';
import type { StoredTask } from '../../../tasks/task-job.ts';
import type { TaskSignal } from '../../../tasks/task-signal.ts';
import { createSqliteClient, type ClientFile } from '../connection/client.ts';
import type { ResultOf, WriterCall, WriterSettings } from '../thread/protocol.ts';
import { createTaskReader } from './reader.ts';
import type { TaskMessage } from './writer.ts';

export function sqliteTaskEngine(
  file: ClientFile,
  { clock = systemClock, root }: Pick<TasksOptions, 'clock' | 'root'> = {},
): TaskEngine {
  const { isDurable, path, busyTimeoutMs } = file;
  const subjects = createSubjects<string>({ root });
  const codec = createMessageCodec({ clock });
  const waiters = createWaiters();
  const reader = createTaskReader(file.connect());
  const client = createSqliteClient(file, {
    prefix: 'TASKS',
    reader,
    onCommit: () => waiters.wakeAll(),
  });
  const read: typeof client.read = (work) => client.read(work);

  async function write<Call extends WriterCall>(call: Call): Promise<ResultOf<Call['operation']>> {
    const result = await client.call(call);
    waiters.wakeAll();
    return result;
  }

  function messageOf(signal: TaskSignal): TaskMessage {
    const { taskId, step } = signal.payload;
    const entry = codec.encode(signal);
    const id = typeof taskId === 'string' ? taskId : undefined;
    if (signal.subject.endsWith('.queue'))
      return { entry, taskId: id, sequenceTarget: 'queue_seq' };
    if (signal.subject.endsWith('.terminal'))
      return { entry, taskId: id, sequenceTarget: 'terminal_seq' };
    return { entry, taskId: id, sequenceTarget: typeof step === 'string' ? { step } : undefined };
  }
  const withMessages = <T extends { readonly signals: readonly TaskSignal[] }>(item: T) => {
    const { signals, ...rest } = item;
    return { ...rest, messages: signals.map(messageOf) };
  };

  const queuesOf = (request: ClaimRequest) =>
    request.rules.map(({ type }) => ({
      type,
      group: consumerGroups.workers<string>(type),
      subject: subjects.tasks.type<string>(type).queue,
    }));

  async function claim(
    request: ClaimRequest,
    { waitMs, signal }: ClaimWait,
  ): Promise<readonly StoredTask[]> {
    const types = request.rules.map(({ type }) => type);
    const queues = queuesOf(request);
    const claimNow = async (now: ClaimRequest): Promise<ClaimAnswer> => {
      client.setWaiting(true);
      // Query first: a waiting worker must not take the write lock without a job to claim.
      const dueMs = read(() => reader.dueAtMs(types, now.nowMs)) ?? Infinity;
      if (dueMs > 0) return { claimed: [], freeAtMs: dueMs };
      // Call the writer directly: `write` wakes all waiting claims, including this one.
      const { claimed, freeAtMs } = await client.call({
        operation: 'tasks.changeAndClaim',
        changes: [],
        claim: now,
        queues,
        nowMs: now.nowMs,
      });
      return { claimed, freeAtMs: freeAtMs ?? Infinity };
    };
    try {
      return await claimUntilFound(claimNow, request, { waitMs, signal, clock, waiters });
    } finally {
      if (waiters.size === 0) client.setWaiting(false);
    }
  }

  return {
    capabilities: {
      durable: isDurable,
      crossProcess: isDurable,
      atomicSignals: true,
      exactLimits: true,
      exactOrder: true,
    },
    beatThread: isDurable
      ? {
          module: new URL(`./beat${extname(import.meta.url)}`, import.meta.url).href,
          settings: { path, busyTimeoutMs } satisfies WriterSettings,
        }
      : undefined,
    enqueue: (entries, nowMs) =>
      write({ operation: 'tasks.enqueue', entries: entries.map(withMessages), nowMs }),
    async changeAndClaim(changes, request, nowMs) {
      const { outcomes, claimed } = await write({
        operation: 'tasks.changeAndClaim',
        changes: changes.map(withMessages),
        claim: request === undefined ? undefined : { ...request, nowMs },
        queues: request === undefined ? [] : queuesOf(request),
        nowMs,
      });
      return { outcomes, claimed };
    },
    claim,
    get: async (refs) => read(() => reader.get(refs)),
    heads: async (refs) => read(() => reader.heads(refs)),
    list: async (filter, page) => read(() => reader.list(filter, page)),
    counts: async () => read(() => reader.counts()),
    beat: (beat) => write({ operation: 'tasks.beat', ...beat }),
    workers: async () => read(() => reader.workers()),
    forgetWorker: (worker) => write({ operation: 'tasks.forgetWorker', worker }),
    overdue: async (query) => read(() => reader.overdue(query)),
    dueScheduled: async (query) => read(() => reader.dueScheduled(query)),
    endedBefore: async (query) => read(() => reader.endedBefore(query)),
    remove: (refs) => write({ operation: 'tasks.remove', refs }),
    async tidy(nowMs) {
      while (await write({ operation: 'tasks.tidy', nowMs }));
    },
    setMode: (type, mode) => write({ operation: 'tasks.setMode', type, mode }),
    modes: async () => read(() => reader.modes()),
    repair: (signals, nowMs) =>
      write({ operation: 'tasks.repair', messages: signals.map(messageOf), nowMs }),
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      waiters.wakeAll();
    },
  };
}
