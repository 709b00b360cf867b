// A Nest application as a user writes it, from the HTTP request to the receiver of a webhook, on both databases.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { INestApplication } from '@nestjs/common';
import { verifyWebhook } from '../../src/destinations/webhook/index.ts';
import { MillraceRuntime, OUTBOX_LEDGER, type MillraceHealth } from '../../src/nest/index.ts';
import type { OutboxLedger } from '../../src/outbox/index.ts';
import { startChild } from '../../src/testing/child-process.ts';
import { startHttpReceiver } from '../../src/testing/index.ts';
import { until } from '../store/rig.ts';
import type { AppSettings, CompiledApp } from './compile-app.ts';

export interface AppEngines {
  readonly store: string;
  readonly database?: string | undefined;
}

const secrets = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'];

interface Health {
  readonly status: string;
  readonly details: { readonly millrace: MillraceHealth };
}

interface RunningApp extends AsyncDisposable {
  readonly app: INestApplication;
  readonly url: string;
  readonly ledger: OutboxLedger;
}

/** Health and termination do not depend on the database, so they are tested on SQLite only. */
export function appCases(
  engine: 'sqlite' | 'postgres',
  compiled: CompiledApp,
  newEngines: () => Promise<AppEngines>,
): void {
  after(() => compiled[Symbol.dispose]());

  async function start(settings: AppSettings): Promise<RunningApp> {
    const app = await compiled.createApp(settings);
    const url = await app.getUrl();
    const ledger = app.get<OutboxLedger>(OUTBOX_LEDGER);
    return { app, url, ledger, [Symbol.asyncDispose]: () => app.close() };
  }

  test(`${engine}: an event from a controller reaches its handler and, through the outbox, a webhook receiver`, async () => {
    await using receiver = await startHttpReceiver();
    await using running = await start({ ...(await newEngines()), receiver: receiver.url });
    const { url, ledger } = running;
    const response = await post(`${url}/payments`, { id: 'p1', amount: 12.5 });
    const { eventId } = (await response.json()) as { readonly eventId: string };
    await until('the mail and the webhook have arrived', () => receiver.requests.length >= 2);
    const mail = receiver.requests.find(({ path }) => path === '/mail');
    assert.deepEqual(JSON.parse(mail?.body ?? ''), { amount: 12.5 });
    const hook = receiver.requests.find(({ path }) => path === '/hook');
    assert.ok(hook !== undefined);
    verifyWebhook({ body: hook.body, headers: hook.headers, secrets });
    assert.equal(hook.headers['idempotency-key'], eventId);
    const { data } = JSON.parse(hook.body) as { readonly data: object };
    assert.deepEqual(data, { paymentId: 'p1', amount: 12.5 });
    await until('the message is marked as sent', async () => (await ledger.counts()).SENT === 1);
    const [row] = await ledger.list({});
    assert.equal(row?.sourceEventId, eventId);
    assert.equal(row.tenantId, 'core');
    assert.equal(row.userId, 'u1');
  });

  test(`${engine}: closing waits for a running delivery and stores its outcome`, async () => {
    await using receiver = await startHttpReceiver();
    const settings = { ...(await newEngines()), receiver: receiver.url };
    const { app, url, ledger } = await start(settings);
    const release = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    receiver.answer(({ path }, response) => {
      const respond = (): void => void response.writeHead(204).end();
      if (path !== '/hook') return respond();
      arrived.resolve();
      void release.promise.then(respond);
    });
    const { runners, dispatcher } = app.get(MillraceRuntime);
    await post(`${url}/payments`, { id: 'p1', amount: 1 });
    await arrived.promise;
    let isClosed = false;
    const closing = app.close().then(() => (isClosed = true));
    await until('the dispatcher is stopping', () => dispatcher?.state === 'stopping');
    assert.equal(isClosed, false);
    release.resolve();
    await closing;
    assert.deepEqual(
      [...runners.values()].map(({ state }) => state),
      ['stopped', 'stopped'],
    );
    await assert.rejects(ledger.counts(), { code: 'STORE_CLOSED' });
    await using again = await start(settings);
    const { SENT, CLAIMED } = await again.ledger.counts();
    assert.deepEqual({ SENT, CLAIMED }, { SENT: 1, CLAIMED: 0 });
  });

  if (engine === 'postgres') return;

  test(`${engine}: the health endpoint reports ok, and degraded after a dead letter`, async () => {
    await using receiver = await startHttpReceiver();
    await using running = await start({ ...(await newEngines()), receiver: receiver.url });
    const { url } = running;
    const ask = async (): Promise<Health> => {
      const response = await fetch(`${url}/health`);
      assert.equal(response.status, 200);
      return (await response.json()) as Health;
    };
    const healthy = await ask();
    assert.equal(healthy.status, 'ok', JSON.stringify(healthy));
    const { subscriptions, dispatcher } = healthy.details.millrace;
    assert.deepEqual(Object.keys(subscriptions).toSorted(), [
      'sub:paymenthub:outbox:v1',
      'sub:paymenthub:payment-mailer:v1',
    ]);
    assert.deepEqual(dispatcher, { state: 'started', inFlight: 0 });
    await post(`${url}/payments`, { id: 'p1', amount: -1 });
    let degraded = healthy;
    await until(
      'the health is degraded',
      async () => (degraded = await ask()).status === 'degraded',
    );
    assert.match(degraded.details.millrace.problems.join(), /payment-mailer:v1: dead letters/);
  });

  test(`${engine}: a process that is terminated under load loses no accepted payment`, async () => {
    await using receiver = await startHttpReceiver();
    const settings: AppSettings = { ...(await newEngines()), receiver: receiver.url };
    const accepted: string[] = [];
    await using child = startChild(compiled.main, { input: settings });
    const { url } = await child.message(isListening);
    const isEnough = Promise.withResolvers<void>();
    // Node's HTTP server keeps serving busy connections while it closes, so the writers stop by themselves.
    let left = Number.POSITIVE_INFINITY;
    const load = Array.from({ length: 4 }, async (_, writer) => {
      for (let at = 0; left > 0; at += 1, left -= 1) {
        const id = `w${writer}-${at}`;
        const response = await post(`${url}/payments`, { id, amount: at }).catch(() => undefined);
        // The process is ending or has ended.
        if (response?.status !== 201) return;
        const { eventId } = (await response.json()) as { readonly eventId: string };
        accepted.push(eventId);
        if (at === 10) isEnough.resolve();
      }
    });
    await isEnough.promise;
    const killed = child.kill('SIGTERM');
    left = 20;
    const end = await killed;
    assert.equal(end, 'SIGTERM', child.errors());
    await Promise.all(load);
    const seen = (path: string): Set<unknown> =>
      new Set(
        receiver.requests
          .filter((each) => each.path === path)
          .map(({ headers }) => headers['idempotency-key']),
      );
    await using running = await start(settings);
    const { ledger } = running;
    await until(
      'all messages are sent',
      async () => (await ledger.counts()).SENT >= accepted.length,
    );
    await until('all events are handled', () => seen('/mail').size >= accepted.length);
    const hooks = seen('/hook');
    assert.deepEqual(
      accepted.filter((eventId) => !hooks.has(eventId)),
      [],
    );
  });
}

export function post(url: string, body: object): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(60_000),
  });
}

function isListening(message: unknown): message is { readonly url: string } {
  return typeof message === 'object' && message !== null && 'url' in message;
}
