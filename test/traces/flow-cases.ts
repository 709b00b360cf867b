// A flow with a command, its event, a reactor, a delivered and a failing webhook, and a failing handler; and
// its trace from the platform, over HTTP and by the command line.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SignJWT } from 'jose';
import { z } from 'zod';
import { webhookDestination } from '../../src/destinations/webhook/index.ts';
import { defineAggregate } from '../../src/aggregates/index.ts';
import { defineCommand, defineEvent } from '../../src/contracts/index.ts';
import { createPlatform, defineModule, type Platform } from '../../src/platform/index.ts';
import { reactor } from '../../src/reactors/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import { startHttpReceiver } from '../../src/testing/index.ts';
import { subscription, Terminal } from '../../src/subscriptions/index.ts';
import type { Trace } from '../../src/traces/index.ts';
import { runMillrace } from '../cli-store-terminal.ts';
import { until } from '../store/rig.ts';

const placed = defineEvent('order.placed.v1', z.object({ sum: z.number() }));
const place = defineCommand('order.place', z.object({ sum: z.number() }));
const order = defineAggregate({
  bc: 'shop',
  name: 'order',
  version: 1,
  events: [placed],
  commands: [place],
  initial: 0,
  evolve: { 'order.placed.v1': (_sum, payload) => payload.sum },
  decide: { 'order.place': ({ sum }) => placed({ sum }) },
});
const sent = defineEvent('bill.sent.v1', z.object({ sum: z.number() }));
const filed = defineEvent('bill.filed.v1', z.object({}));
const send = defineCommand('bill.send', z.object({ sum: z.number() }));
const bill = defineAggregate({
  bc: 'shop',
  name: 'bill',
  version: 1,
  events: [sent, filed],
  commands: [send],
  initial: 0,
  evolve: { 'bill.sent.v1': (_sum, payload) => payload.sum, 'bill.filed.v1': (sum) => sum },
  decide: { 'bill.send': ({ sum }) => [sent({ sum }), filed({})] },
});
const billing = reactor({
  name: 'sub:shop:billing:v1',
  events: [placed],
  from: 'start',
  onRejected: 'ignore',
  on: {
    'order.placed.v1': ({ aggregate, payload }) => ({
      id: aggregate.id,
      command: send({ sum: payload.sum }),
    }),
  },
});
const broken = subscription({
  name: 'sub:shop:broken:v1',
  filter: { types: ['bill.sent.v1'] },
  handler: () => {
    throw new Terminal('no such mailbox');
  },
});

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

interface Engines {
  readonly store: string;
  readonly outbox?: string;
  /** If it is set, every delivery is a job of this queue. */
  readonly queue?: string;
}

export function flowCases(engine: string, enginesOf: () => Promise<Engines>): void {
  test(`a trace shows a flow from its command to its deliveries on ${engine}`, async () => {
    const engines = await enginesOf();
    await using receiver = await startHttpReceiver({
      answer: ({ path }, response) => response.writeHead(path === '/down' ? 503 : 204).end(),
    });
    const webhookTo = (id: string) =>
      webhookDestination({
        endpoint: { id, url: `${receiver.url}/${id}`, secrets: [secret] },
        allowAddresses: ['127.0.0.1/32'],
        allowHttp: true,
      });
    await using partner = webhookTo('partner');
    await using down = webhookTo('down');
    await using platform = await createPlatform({
      engines,
      modules: [
        defineModule({
          name: 'shop',
          aggregates: [order, bill],
          reactors: [billing],
          subscriptions: [broken],
          outbox: [
            {
              name: 'sub:shop:outbox:v1',
              filter: { types: ['bill.sent.v1'] },
              mapper: {
                map: ({ type: eventType }) => [
                  { integrationType: 'webhook:partner', eventType, payload: {} },
                  { integrationType: 'webhook:down', eventType, payload: {} },
                ],
              },
            },
          ],
          destinations: { 'webhook:partner': partner, 'webhook:down': down },
        }),
      ],
    });
    await platform.start();
    const correlationId = 'flow-1';
    const command = { type: 'order.place', payload: { sum: 5 } };
    await platform.handle({ tenant: 'core', id: 'o1', command, correlationId });
    await platform.handle({ tenant: 'core', id: 'o2', command, correlationId: 'flow-2' });
    await until('the trace has all checkpoints and outcomes', () =>
      isWhole(platform, correlationId),
    );
    const hasJobs = engines.queue !== undefined;
    checkFlow(await platform.traces.get(correlationId), hasJobs);

    await using api = await startApi(platform, { port: 0, jwt: { secret, audience: 'millrace' } });
    const token = await new SignJWT({ tenant: '*', roles: ['admin'] })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject('boss')
      .setAudience('millrace')
      .setExpirationTime('1h')
      .sign(Buffer.from(secret));
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${api.url}/admin/traces/${correlationId}`, { headers });
    checkFlow((await response.json()) as Trace, hasJobs);

    const millrace = (...args: string[]) =>
      runMillrace(['trace', ...args], {
        env: { MILLRACE_STORE: engines.store, MILLRACE_OUTBOX: engines.outbox ?? '' },
      });
    const printed = await millrace(correlationId, '--json', '--wait', '60000');
    assert.equal(printed.code, 0, printed.stderr);
    const fromCli = JSON.parse(printed.stdout) as Trace;
    checkFlow(fromCli, hasJobs);
    assert.equal(fromCli.complete, true);
    const drawn = await millrace(correlationId);
    assert.match(drawn.stdout, /^flow-1 {2}2 commands, 3 events, 2 deliveries, 1 dead, /);
    assert.match(drawn.stdout, /└─ bill\.send/);
    assert.match(drawn.stdout, /✗ sub:shop:broken:v1 {2}dead after 1 failure: no such mailbox/);
    assert.match(drawn.stdout, /➜ webhook:partner {2}SENT in /);
    assert.match(drawn.stdout, /➜ webhook:down {2}\w+ after \d+ failures?, due .*503/);
    const unknown = await millrace('unknown', '--wait', '60000');
    assert.deepEqual([unknown.code, unknown.stdout], [1, '']);
    assert.match(unknown.stderr, /unknown flow 'unknown'/);
    assert.equal((await millrace()).code, 2);
    assert.equal((await millrace(correlationId, '--tenant', 'demo', '--wait', '60000')).code, 1);
  });
}

/** Checkpoints are saved about once a second. */
async function isWhole(platform: Platform, correlationId: string): Promise<boolean> {
  const { nodes } = await platform.traces.get(correlationId);
  const isOver = nodes.every(
    (node) =>
      (node.kind !== 'handler' || node.state !== 'pending') &&
      (node.kind !== 'delivery' || node.sentAt !== null || node.attempts > 0),
  );
  return isOver && nodes.filter(({ kind }) => kind === 'delivery').length === 2;
}

function checkFlow({ nodes, missing, truncated, durationMs }: Trace, hasJobs: boolean): void {
  const job = (outcome: string): string[] =>
    hasJobs ? [`            #1 ${outcome}, finished`] : [];
  assert.deepEqual(
    nodes.map((node) => {
      const name =
        node.kind === 'event'
          ? node.type
          : node.kind === 'command'
            ? node.command
            : node.kind === 'handler'
              ? `${node.subscription} ${node.state}`
              : node.kind === 'job'
                ? `#${node.attempt} ${node.outcome}, ${node.durationMs === null ? 'open' : 'finished'}`
                : node.kind !== 'delivery'
                  ? node.id
                  : `${node.destination} ${node.sentAt === null ? 'not sent' : 'sent'}`;
      return `${'  '.repeat(node.depth)}${name}`;
    }),
    [
      'order.place',
      '  order.placed.v1',
      '    sub:shop:billing:v1 passed',
      '      bill.send',
      '        bill.sent.v1',
      '          sub:shop:broken:v1 dead',
      '          sub:shop:outbox:v1 passed',
      '          webhook:partner sent',
      ...job('sent'),
      '          webhook:down not sent',
      ...job('failed'),
      '        bill.filed.v1',
    ],
  );
  assert.deepEqual([missing, truncated], [0, false]);
  assert.ok(durationMs >= 0);
  for (const node of nodes) {
    const hasTime = node.kind !== 'handler' || node.state === 'dead';
    assert.equal(node.offsetMs !== null && node.offsetMs >= 0, hasTime, node.id);
  }
}
