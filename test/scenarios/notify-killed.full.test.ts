// Kills the product at hops of a notification and restarts it: every notification arrives once, in the
// store, on the bus, on screens and in mailboxes.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { notifications } from '../../modules/customers/index.ts';
import { createPlatform, type Platform } from '../../src/platform/index.ts';
import {
  apiCaller,
  startChild,
  startSmtp,
  type ApiResponse,
  type ApiCaller,
  type Child,
} from '../../src/testing/index.ts';
import { reservePort } from '../../src/testing/servers/reserve-port.ts';
import { createWorkspace, inTime, isText, soakMinutes, until } from '../store/rig.ts';
import type { NotifyProductInput, NotifyKill } from './notify-product-main.ts';
import { outboxOf } from './outbox-of.ts';

const tenant = 'core';
const base = '/api/v1/notify/customers';
/** Enough customers for a broadcast of more than one page. */
const others = 120;

const hops = [
  'bus customer-inbox.delivered.v1',
  'published customer-inbox.delivered.v1',
  'outbox customer-inbox.delivered.v1',
  'mail',
  'clock customer-inbox.wake-set.v1',
  'due',
  'published customer-inbox.reminded.v1',
  'reactor customer-inbox.escalated.v1',
  'reactor customer-inbox.acknowledged.v1',
  'reactor broadcast.published.v1',
  'reactor broadcast.advanced.v1',
] as const;
const broadcastId = (index: number): string => `b-${index}`;
/** One of each worker that no other test kills: bus publisher, clock, escalation, broadcast pages. */
const hopsOfShortForm: ReadonlySet<string> = new Set([
  'published customer-inbox.delivered.v1',
  'due',
  'reactor customer-inbox.escalated.v1',
  'reactor broadcast.advanced.v1',
]);
const isLongForm = soakMinutes > 0;
const killPoints: readonly NotifyKill[] = hops
  .filter((hop) => isLongForm || hopsOfShortForm.has(hop))
  .map((at, index) => ({
    at,
    who: at.includes('broadcast') ? broadcastId(index) : `k-${index}`,
  }));

test('a product that is killed at a hop notifies every customer once', async () => {
  await using workspace = await createWorkspace();
  await using smtp = await startSmtp();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  await using reserved = await reservePort();
  const { host, port } = reserved;
  const input: NotifyProductInput = { store, host, port, smtp: smtp.url };
  const start = async (killPoint?: NotifyKill): Promise<Child> => {
    const script = new URL('./notify-product-main.ts', import.meta.url);
    const child = startChild(script, { input: { ...input, killPoint } });
    await child.message(isText('started'));
    return child;
  };
  // This platform only observes, and does none of the work.
  await using platform = await createPlatform({
    engines: { store },
    roles: ['api'],
    modules: [notifications()],
  });
  const { secret } = await platform.tokens.create({
    name: 'shop',
    scopes: ['append', 'read'],
    tenant,
  });
  const shop = apiCaller(`http://${host}:${port}`, secret);
  const isSpread = killPoints.some(({ at }) => at.includes('broadcast'));
  for (let index = 0; isSpread && index < others; index += 1) {
    const preferences = { timeZone: 'UTC', quietHours: [], categories: {} };
    const command = { type: 'customer-inbox.configure', payload: { preferences } };
    await platform.handle({ tenant, id: `o-${index}`, command });
  }

  let child: Child | undefined;
  let requests = Promise.resolve();
  let mails = 0;
  try {
    for (const [index, killPoint] of killPoints.entries()) {
      // Requests without a response are sent again to the next process.
      child = await start(killPoint);
      await requests;
      requests = requestNotifications(shop, index, killPoint);
      assert.equal(
        await inTime(`the process is killed at ${killPoint.at}`, child.ended),
        'SIGKILL',
      );
    }
    child = await start();
    await requests;
    for (const index of killPoints.keys()) await acknowledgeCopy(shop, index);
    await isOver(platform, shop);
    mails = await everythingOnce(platform, shop);
    await until('all mails are sent', async () => {
      const { SENT, PENDING, CLAIMED, FAILED } = await outboxOf(platform).counts();
      return SENT === mails && PENDING + CLAIMED + FAILED === 0;
    });
  } finally {
    await child?.kill();
  }
  const ids = smtp.messages().map(({ source }) => /^Message-ID: (.+)$/im.exec(source)?.[1]);
  assert.equal(new Set(ids).size, mails);
  if (killPoints.some(({ at }) => at === 'mail')) {
    assert.ok(ids.length > mails, 'the unsettled mail was not sent again');
  }
  assert.equal(await platform.engines.subscriptions.deadLetters.count({}), 0);
  assert.equal((await outboxOf(platform).counts()).DEAD, 0);
});

/** A digest of one, an alert with two reminders and an escalation, a broadcast; all repeated until they get a response. */
async function requestNotifications(
  shop: ApiCaller,
  index: number,
  killPoint: NotifyKill,
): Promise<void> {
  const path = `${base}/k-${index}`;
  const every = { enabled: true, channels: ['socket', 'email'], breaksQuiet: false };
  await insist(shop, 'PUT', `${path}/preferences`, {
    timeZone: 'UTC',
    quietHours: [],
    categories: { alert: every },
  });
  await insist(shop, 'PUT', `${path}/contact`, { email: `k-${index}@example.org` });
  const digest = { key: 'sales', windowMs: 1_000 };
  const info = { category: 'info', title: `info ${index}`, digest };
  await insist(shop, 'POST', `${path}/notifications`, info, `info-${index}`);
  const nag = { everyMs: 1_000, times: 2, escalate: { after: 1, to: `boss-${index}` } };
  const alert = { category: 'alert', title: `alert ${index}`, nag };
  await insist(shop, 'POST', `${path}/notifications`, alert, `alert-${index}`);
  if (killPoint.at.includes('acknowledged')) await acknowledgeCopy(shop, index);
  if (!killPoint.at.includes('broadcast')) return;
  const command = '/api/v1/commands/broadcast.publish';
  const payload = { category: 'maintenance', title: `broadcast ${index}` };
  await insist(shop, 'POST', command, { id: broadcastId(index), payload }, `broadcast-${index}`);
}

/** Sends the same request until it gets a response. */
async function insist(
  shop: ApiCaller,
  method: string,
  path: string,
  body?: object,
  key?: string,
): Promise<ApiResponse> {
  let response: ApiResponse | undefined;
  await until(`${method} ${path} gets a response`, async () => {
    const headers = key === undefined ? {} : { 'idempotency-key': key };
    response = await shop.ask(method, path, body, headers).catch(() => undefined);
    return response !== undefined;
  });
  assert.ok((response?.status ?? 500) < 300, `${path}: ${JSON.stringify(response?.body)}`);
  return response as ApiResponse;
}

/** Acknowledges the escalated copy after all reminders, which acknowledges the original, too. */
async function acknowledgeCopy(shop: ApiCaller, index: number): Promise<void> {
  let copyId: string | undefined;
  await until(`k-${index} is reminded`, async () => {
    const list = await listOf(shop, `k-${index}`).catch(() => []);
    return list.some(({ reminders }) => reminders === 2);
  });
  await until(`boss-${index} is notified`, async () => {
    const path = `${base}/boss-${index}/notifications`;
    const response = await shop
      .ask<{ items?: { notificationId: string; category: string }[] }>('GET', path)
      .catch(() => undefined);
    const copy = response?.body.items?.find(({ category }) => category === 'alert');
    copyId = copy?.notificationId;
    return copyId !== undefined;
  });
  await insist(shop, 'POST', `${base}/boss-${index}/notifications/${copyId ?? ''}/acknowledge`);
}

type Notification = Readonly<Record<string, unknown>>;

async function listOf(shop: ApiCaller, customer: string): Promise<readonly Notification[]> {
  const path = `${base}/${customer}/notifications`;
  return (await shop.ask<{ items: Notification[] }>('GET', path)).body.items;
}

async function isOver(platform: Platform, shop: ApiCaller): Promise<void> {
  for (const [index, { at }] of killPoints.entries()) {
    await until(`k-${index} has its digest and its acknowledged alert`, async () => {
      const list = await listOf(shop, `k-${index}`);
      const alert = list.find(({ category }) => category === 'alert');
      const digest = list.find(({ category }) => category === 'digest');
      return alert?.['status'] === 'acknowledged' && digest?.['status'] === 'delivered';
    });
    if (!at.includes('broadcast')) continue;
    await until(`${broadcastId(index)} has reached all`, async () => {
      const { state } = await platform.load(broadcastOf(platform), {
        tenant,
        id: broadcastId(index),
      });
      return (state as { readonly status: string }).status === 'completed';
    });
  }
}

function broadcastOf({ modules }: Platform) {
  const found = modules.aggregates.get('notify.broadcast.v1');
  assert.ok(found);
  return found;
}

/** Returns the number of mails that must be sent. */
async function everythingOnce(platform: Platform, shop: ApiCaller): Promise<number> {
  const events = await Array.fromAsync(platform.engines.store.readAll());
  const countOf = (id: string, type: string, fits: (payload: object) => boolean = () => true) =>
    events.filter(
      (event) =>
        event.aggregate.id === id &&
        event.type === `customer-inbox.${type}.v1` &&
        fits(event.payload as object),
    ).length;
  const titled = (title: string) => (payload: object) =>
    (payload as { notice: { title: string } }).notice.title === title;
  const bus = await platform.engines.bus();
  for (const [index, { at }] of killPoints.entries()) {
    const who = `k-${index}`;
    assert.deepEqual(
      {
        alerts: countOf(who, 'delivered', titled(`alert ${index}`)),
        digests: countOf(who, 'delivered', titled('sales (1)')),
        closed: countOf(who, 'digest-closed'),
        reminders: countOf(who, 'reminded'),
        escalated: countOf(who, 'escalated'),
        acknowledged: countOf(who, 'acknowledged'),
        copies: countOf(`boss-${index}`, 'delivered', titled(`alert ${index}`)),
      },
      { alerts: 1, digests: 1, closed: 1, reminders: 2, escalated: 1, acknowledged: 1, copies: 1 },
    );
    const notices = 3;
    const published = async () => Array.fromAsync(bus.read(`gbe.notify.customer.${who}.alert`));
    await until(`${who} is on the bus`, async () => (await published()).length >= notices);
    const ids = (await published()).map(({ id }) => id);
    assert.deepEqual([ids.length, new Set(ids).size], [notices, notices]);
    const followed = await shop.follow(`${base}/${who}/follow?after=start`, notices + 2);
    assert.equal(new Set(followed.map(({ id }) => id)).size, followed.length);
    if (!at.includes('broadcast')) continue;
    for (let each = 0; each < others; each += 1) {
      assert.equal(countOf(`o-${each}`, 'delivered', titled(`broadcast ${index}`)), 1, `o-${each}`);
    }
  }
  return killPoints.length * 3;
}
