// Every benchmark by name; each is loaded only when it runs.

import type { Benchmark } from './benchmark.ts';

export interface BenchmarkEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<{ readonly benchmark: Benchmark }>;
}

export const benchmarks: readonly BenchmarkEntry[] = [
  {
    name: 'contracts',
    summary: 'names, envelope validation, payloads and ids',
    load: () => import('./contracts.ts'),
  },
  {
    name: 'store',
    summary: 'appends, reads, catching up and following, on SQLite and PostgreSQL',
    load: () => import('./store.ts'),
  },
  {
    name: 'subscriptions',
    summary: 'all events through a handler, checkpoints included, on SQLite and PostgreSQL',
    load: () => import('./subscriptions.ts'),
  },
  {
    name: 'outbox',
    summary: 'sending, waiting and claiming, beside job queues and the loop of the document',
    load: () => import('./outbox.ts'),
  },
  {
    name: 'kurrent',
    summary: 'the KurrentDB protocol through the official client, beside a gRPC echo',
    load: () => import('./kurrent.ts'),
  },
  {
    name: 'server',
    summary: 'commands over HTTP until they are seen, start and memory, beside bare Fastify',
    load: () => import('./server.ts'),
  },
  {
    name: 'collab',
    summary: 'messages with tags until they are on screens, beside bare Fastify and an insert',
    load: () => import('./collab.ts'),
  },
  {
    name: 'notify',
    summary: 'topics beside ntfy itself: publishing, fan-out, latency, idle readers',
    load: () => import('./notify.ts'),
  },
  {
    name: 'bus',
    summary: 'five hundred streams read by one pattern, beside one stream, on every engine',
    load: () => import('./bus.ts'),
  },
  {
    name: 'tasks',
    summary: 'jobs in, worked off and waited for, beside BullMQ and pg-boss',
    load: () => import('./tasks.ts'),
  },
];
