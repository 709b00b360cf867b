// Benchmark of the outbox compared with job queues and the loop of the outbox document. PostgreSQL syncs every
// commit; Redis syncs once a second.
//
// Messages are counted: 20,000 in the full run and 4,000 in the quick one. Full drains have one uncounted and at
// least three counted rounds; each round times one hundred claims.

import { startRedis } from '../src/testing/index.ts';
import type { Benchmark } from './benchmark.ts';
import { bullMqQueue } from './outbox/bullmq-queue.ts';
import { claimCases } from './outbox/claim-cases.ts';
import { drainCases } from './outbox/drain-cases.ts';
import { graphileQueue } from './outbox/graphile-queue.ts';
import { latencyCase } from './outbox/latency-case.ts';
import { millraceOverBullMq, millraceQueue } from './outbox/millrace-queue.ts';
import { naiveQueue } from './outbox/naive-queue.ts';
import { noisyCase } from './outbox/noisy-case.ts';
import { pgBossQueue } from './outbox/pg-boss-queue.ts';
import type { QueueServers } from './outbox/queue-subject.ts';
import { createDatabases } from './store/databases.ts';

const drained = [
  millraceQueue,
  millraceOverBullMq,
  naiveQueue,
  pgBossQueue,
  graphileQueue,
  bullMqQueue,
];
const idle = [millraceQueue, millraceOverBullMq, pgBossQueue, graphileQueue, bullMqQueue];
const behindNoise = [millraceQueue, millraceOverBullMq, naiveQueue, graphileQueue, bullMqQueue];

export const benchmark: Benchmark = {
  name: 'outbox',
  peers: ['pg-boss', 'graphile-worker', 'bullmq'],
  url: import.meta.url,
  // Most of the time is needed to enqueue 20,000 messages for each round.
  secondsPerSubject: 10,
  cases: (context) => {
    const { quick, signal, defer } = context;
    const newDatabase = createDatabases(context);
    let redis: ReturnType<typeof startRedis> | undefined;
    defer(async () => (await redis)?.[Symbol.asyncDispose]());
    const servers: QueueServers = {
      postgres: () => newDatabase('postgres'),
      redis: async () => (await (redis ??= startRedis({ signal, appendOnly: 'everysec' }))).url,
    };
    return [
      ...drainCases(drained, servers, {
        quick,
        slow: [naiveQueue, millraceOverBullMq],
        goals: [
          { vs: 'graphile-worker', ratioMin: 1.5 },
          { vs: 'naive', ratioMin: 15 },
        ],
      }),
      latencyCase(idle, servers, { quick, goals: [{ vs: 'graphile-worker', ratioMin: 1 }] }),
      noisyCase(behindNoise, servers, { quick, goals: [{ p50MsMax: 150 }] }),
      ...claimCases(servers, { quick }),
    ];
  },
};
