// Benchmark of the parts that Millrace implements although a library exists: its HTTP layer, metrics and JetStream client.

import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { openNats } from '../src/engines/nats/index.ts';
import { createMetrics } from '../src/telemetry/index.ts';
import { startNats } from '../src/testing/index.ts';
import {
  ours,
  type Benchmark,
  type BenchmarkContext,
  type Case,
  type Subject,
} from './benchmark.ts';
import { each, eachInFlight } from './loops.ts';
import { importPeer } from './peers.ts';
import { connections, startServedHttp } from './server/served-http.ts';

interface PromClient {
  readonly Registry: new () => { metrics(): Promise<string> };
  readonly Counter: new (options: {
    readonly name: string;
    readonly help: string;
    readonly labelNames: readonly string[];
    readonly registers: readonly object[];
  }) => { inc(labels: Readonly<Record<string, string>>): void };
}

export const benchmark: Benchmark = {
  name: 'libraries',
  peers: ['fastify', 'prom-client'],
  url: import.meta.url,
  cases: async ({ signal, defer }) => [
    httpCase(),
    await metricsCase(),
    await jetStreamCase({ signal, defer }),
  ],
};

/** A validated POST with credentials; both servers run in a separate process. */
function httpCase(): Case {
  const subject = (name: string, script: URL): Subject => ({
    name,
    setup: async () => {
      const served = await startServedHttp(script, { file: '' });
      const body = { id: 'a-1', payload: { amount: 5 } };
      return {
        run: eachInFlight(connections, () => served.call('POST', '/echo', body)),
        teardown: () => served.close(),
      };
    },
  });
  return {
    name: 'HTTP: validated POST, 50 connections',
    measure: 'throughput',
    subjects: [
      subject(ours, new URL('./libraries/millrace-http-main.ts', import.meta.url)),
      subject('fastify', new URL('./libraries/fastify-http-main.ts', import.meta.url)),
    ],
  };
}

/** Counting is on the path of every event, so it must stay cheap. */
async function metricsCase(): Promise<Case> {
  const { Counter, Registry } = (await importPeer<{ default: PromClient }>('prom-client')).default;
  const labels = ['core', 'acme', 'demo'].flatMap((tenant) =>
    ['a.opened.v1', 'a.closed.v1'].map((type) => ({ event_type: type, tenant })),
  );
  return {
    name: 'metrics: count with two labels',
    measure: 'throughput',
    subjects: [
      {
        name: ours,
        setup: () => {
          const { observer } = createMetrics();
          return {
            run: each(labels, (label) => observer.count?.('events_published_total', label)),
          };
        },
      },
      {
        name: 'prom-client',
        setup: () => {
          const counter = new Counter({
            name: 'events_published_total',
            help: 'Events',
            labelNames: ['event_type', 'tenant'],
            registers: [new Registry()],
          });
          return { run: each(labels, (label) => counter.inc(label)) };
        },
      },
    ],
  };
}

/** The library publishes one message per call; the bus also writes its envelope. */
async function jetStreamCase({
  signal,
  defer,
}: Pick<BenchmarkContext, 'signal' | 'defer'>): Promise<Case> {
  const server = await startNats({ signal });
  defer(async () => server[Symbol.asyncDispose]());
  const payload = { order: 'o-1', text: 'x'.repeat(200) };
  return {
    name: 'JetStream: publish, 64 in flight',
    measure: 'throughput',
    subjects: [
      {
        name: ours,
        setup: async () => {
          const nats = await openNats(server.url, { prefix: 'ours' });
          const message = { subject: 'gbe.events.orders.created', payload };
          return {
            run: eachInFlight(64, () => nats.bus.publish(message)),
            teardown: async () => nats[Symbol.asyncDispose](),
          };
        },
      },
      {
        name: '@nats-io/jetstream',
        setup: async () => {
          const connection = await connect({ servers: server.url });
          const manager = await jetstreamManager(connection);
          await manager.streams.add({ name: 'theirs', subjects: ['theirs.>'] });
          const client = jetstream(connection);
          const text = JSON.stringify(payload);
          return {
            run: eachInFlight(64, async (index) =>
              client.publish('theirs.orders.created', text, { msgID: `m-${index}` }),
            ),
            teardown: () => connection.close(),
          };
        },
      },
    ],
  };
}
