// Every benchmark by name; a benchmark is loaded when it runs.

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
    summary:
      'delivery rate, latency and claims, compared with job queues and the loop of the outbox document',
    load: () => import('./outbox.ts'),
  },
  {
    name: 'kurrent',
    summary: 'the KurrentDB protocol through the official client, compared with a gRPC echo server',
    load: () => import('./kurrent.ts'),
  },
  {
    name: 'server',
    summary:
      'commands over HTTP until their document is visible, start-up and memory, compared with Fastify',
    load: () => import('./server.ts'),
  },
  {
    name: 'collab',
    summary: 'messages with tags until all screens show them, compared with Fastify and one insert',
    load: () => import('./collab.ts'),
  },
  {
    name: 'notify',
    summary: 'topics compared with ntfy: publishing, fan-out, latency, idle readers',
    load: () => import('./notify.ts'),
  },
  {
    name: 'bus',
    summary: 'five hundred streams read by one pattern, compared with one stream, on every engine',
    load: () => import('./bus.ts'),
  },
  {
    name: 'tasks',
    summary: 'enqueueing, processing and latency of jobs, compared with BullMQ and pg-boss',
    load: () => import('./tasks.ts'),
  },
  {
    name: 'mixed',
    summary: 'appends on SQLite while jobs drain and topics are published, in one process',
    load: () => import('./mixed.ts'),
  },
  {
    name: 'console',
    summary: 'the web console in Chromium: append to row, a fast tail, scrolling, first visit',
    load: () => import('./console.ts'),
  },
  {
    name: 'libraries',
    summary:
      'the HTTP layer, metrics and JetStream client, compared with the libraries of the field',
    load: () => import('./libraries.ts'),
  },
];
