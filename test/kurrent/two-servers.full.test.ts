// Two server processes on one database: one of them runs the persistent subscriptions. If it is killed or frozen, the
// other one resumes from the checkpoint.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { PersistentSubscriptionToStream, ResolvedEvent } from '@kurrent/kurrentdb-client';
import {
  event,
  events,
  kurrentClient,
  rejectsWith,
  unique,
  type OfficialClient,
} from './official-clients.ts';
import { until } from '../store/rig.ts';
import { serveSqlite, type ServedSqlite } from './served-sqlite.ts';

const timeout = 300_000;
const kind = await kurrentClient();

const settings = {
  startFrom: 'start',
  resolveLinkTos: false,
  extraStatistics: false,
  messageTimeout: 60_000,
  maxRetryCount: 10,
  checkPointAfter: 10,
  checkPointLowerBound: 1,
  checkPointUpperBound: 5,
  maxSubscriberCount: 'unbounded',
  liveBufferSize: 500,
  readBatchSize: 20,
  historyBufferSize: 500,
  consumerStrategyName: 'RoundRobin',
} as const;

/** Consumes and acknowledges until it is stopped, and reconnects after failures. */
function consume(client: OfficialClient, stream: string, group: string, stop: AbortSignal) {
  const seen: string[] = [];
  const waiting = new Set<() => void>();
  const run = async (): Promise<void> => {
    while (!stop.aborted) {
      const subscription = client.api.subscribeToPersistentSubscriptionToStream(stream, group);
      const leave = (): void => void subscription.unsubscribe();
      stop.addEventListener('abort', leave, { once: true });
      try {
        for await (const each of subscription as PersistentSubscriptionToStream &
          AsyncIterable<ResolvedEvent>) {
          await subscription.ack(each);
          seen.push(each.event?.id ?? '');
          for (const check of waiting) check();
        }
      } catch {
        // The server was killed or does not lead: the client connects to the other one.
        await new Promise((resolve) => setTimeout(resolve, 100));
      } finally {
        stop.removeEventListener('abort', leave);
      }
    }
  };
  const running = run();
  return {
    seen,
    running,
    all: (ids: readonly string[]): Promise<void> =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          const missing = ids.filter((id) => !seen.includes(id));
          reject(new Error(`${missing.length} of ${ids.length} events did not come`));
        }, 120_000);
        const check = (): void => {
          if (!ids.every((id) => seen.includes(id))) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
  };
}

/** With a new client each time, because one that is connected to a frozen server would wait for it. */
async function whenLeading(server: ServedSqlite, stream: string): Promise<void> {
  for (;;) {
    await using probe = kind.connect(server.url);
    try {
      await probe.api.listPersistentSubscriptionsToStream(stream);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}

const idsOf = (sent: readonly { readonly id: string }[]): string[] => sent.map(({ id }) => id);

for (const how of ['SIGKILL', 'SIGSTOP'] as const) {
  test(
    `the leader gets ${how}: consumers continue at the other server, and nothing is lost`,
    { timeout },
    async () => {
      const groupLeaseMs = 3_000;
      await using first = await serveSqlite({ groupLeaseMs });
      await using second = await serveSqlite({ file: first.file, groupLeaseMs });
      await using writer = kind.connect(second.url);
      await using admin = kind.connect(first.url);
      await using consumer = kind.connect(second.url);
      const stream = unique();
      await admin.api.createPersistentSubscriptionToStream(stream, 'g', settings);
      if (how === 'SIGKILL') await assertSentToLeader(second, stream);
      const before = events(30);
      await writer.append(stream, before);
      const stop = new AbortController();
      const consumed = consume(consumer, stream, 'g', stop.signal);
      try {
        await consumed.all(idsOf(before));
        if (how === 'SIGKILL') await first.kill();
        else await freeze(first);
        const later = Array.from({ length: 20 }, () => event());
        for (const each of later) await writer.append(stream, each);
        if (how === 'SIGSTOP') {
          // Consumers hang until the frozen server continues; by then the other one leads.
          await whenLeading(second, stream);
          process.kill(first.pid(), 'SIGCONT');
        }
        await consumed.all(idsOf([...before, ...later]));
        if (how === 'SIGSTOP') {
          // After it continues, it redirects clients to the new leader and no longer runs the group.
          await using late = kind.connect(first.url);
          await rejectsWith('not-leader', () =>
            late.api.deletePersistentSubscriptionToStream(stream, 'g'),
          );
        }
        const more = events(10);
        await writer.append(stream, more);
        await consumed.all(idsOf(more));
      } finally {
        stop.abort();
        await consumed.running;
      }
    },
  );
}

/** A server that does not lead rejects the first call and names the leader. */
async function assertSentToLeader(follower: ServedSqlite, stream: string): Promise<void> {
  await using client = kind.connect(follower.url);
  const create = (): Promise<void> =>
    client.api.createPersistentSubscriptionToStream(stream, 'h', settings);
  await rejectsWith('not-leader', create);
  // The client is now connected to the leader.
  await create();
  const groups = await client.api.listPersistentSubscriptionsToStream(stream);
  assert.deepEqual(groups.map(({ groupName }) => groupName).toSorted(), ['g', 'h']);
}

/** Freezes the server outside of transactions, because an open one would block the other process in SQLite. */
async function freeze(server: ServedSqlite): Promise<void> {
  using database = new DatabaseSync(server.file, { timeout: 60_000 });
  database.exec('BEGIN IMMEDIATE');
  process.kill(server.pid(), 'SIGSTOP');
  await until('the process is stopped', () => isStopped(server.pid()));
  database.exec('ROLLBACK');
}

async function isStopped(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // Only Linux has this file.
  return stat === undefined || stat.slice(stat.lastIndexOf(')')).startsWith(') T');
}
