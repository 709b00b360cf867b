// Notifies a customer on any engines, by HTTP, WebSocket, SMTP, webhook and the bus: immediately, by digest,
// by reminders until the acknowledgement, and by escalation to another customer.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { smtpDestination } from '../../src/destinations/smtp/index.ts';
import { webhookDestination } from '../../src/destinations/webhook/index.ts';
import { composeNotificationMail } from '../../modules/customers/index.ts';
import type { EngineUrls } from '../../src/platform/index.ts';
import { startSmtp, type ApiCaller, type SocketMessage } from '../../src/testing/index.ts';
import { customerRig } from '../../modules/customers/testing/customer-rig.ts';
import { until } from '../store/rig.ts';
import { outboxOf } from './outbox-of.ts';

const base = '/api/v1/notify/customers';
const secrets = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] as const;

export async function notifyScenario(engines: EngineUrls): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const smtp = opened.use(await startSmtp());
  const email = opened.use(
    await smtpDestination({
      transport: smtp.url,
      from: 'Mill <mill@example.org>',
      compose: composeNotificationMail,
    }),
  );
  const hooks = opened.use(await startHooks());
  const webhook = opened.use(
    webhookDestination({
      allowHttp: true,
      allowAddresses: ['127.0.0.1/32'],
      endpoint: async ({ payload }) => ({
        id: String(payload['customerId']),
        url: String(payload['webhookUrl']),
        secrets,
      }),
    }),
  );
  const rig = opened.use(await customerRig({ engines, email, webhook }));
  const shop = await rig.caller('shop', ['append', 'read']);
  const ada = await rig.caller('ada', ['use']);
  const notify = async (customer: string, message: object) =>
    (await shop.ask('POST', `${base}/${customer}/notifications`, message)).body as SocketMessage & {
      notificationId: string;
      outcome: string;
    };

  const every = {
    enabled: true,
    channels: ['socket', 'topic', 'email', 'webhook'],
    breaksQuiet: false,
  };
  await ada.ask('PUT', `${base}/ada/preferences`, {
    timeZone: 'Europe/Berlin',
    quietHours: [],
    categories: { alert: every },
  });
  await ada.ask('PUT', `${base}/ada/contact`, {
    email: 'ada@example.org',
    webhookUrl: `${hooks.url}/ada`,
    topic: 'server-alerts',
  });
  using screen = ada.connect();
  await screen.receive('ready');
  screen.send({ type: 'notify.follow', customerId: 'ada' });
  await screen.receive('notify.following');

  // Delivered immediately on every channel; equal notifications are merged.
  const fire = { category: 'alert', title: 'Fire', key: 'fire' };
  const first = await notify('ada', fire);
  assert.equal(first.outcome, 'delivered');
  assert.deepEqual(
    [(await notify('ada', fire)).outcome, (await notify('ada', fire)).outcome],
    ['merged', 'merged'],
  );
  await screen.receive('notify.merged', ({ count }) => count === 3);
  await smtp.whenReceived(1, AbortSignal.timeout(60_000));
  await until('the webhook is called', () => hooks.bodies.length === 1);
  const bus = await rig.platform.engines.bus();
  const onBus = (pattern: string) => Array.fromAsync(bus.read(pattern));
  await until('the notification is on the topic', async () => {
    return (await onBus('gbe.notify.topic.core_server-alerts')).length === 1;
  });
  assert.equal((await onBus('gbe.notify.customer.ada.alert')).length, 1);
  assert.match(smtp.messages()[0]?.source ?? '', /^Subject: Fire\r?$/m);

  // Delivered in digests when the window ends.
  const digest = { key: 'sales', windowMs: 1_000 };
  const sold = await Promise.all(
    Array.from({ length: 20 }, () => notify('ada', { category: 'info', title: 'Sold', digest })),
  );
  assert.ok(sold.every(({ outcome }) => outcome === 'digested'));
  const digests = (): readonly SocketMessage[] =>
    screen.received.filter(({ category }) => category === 'digest');
  await until('all notifications are in digests', () => {
    return digests().reduce((sum, { count }) => sum + Number(count), 0) === 20;
  });
  assert.equal(
    new Set(digests().map(({ notificationId }) => notificationId)).size,
    digests().length,
  );

  // Repeated, then escalated; acknowledging the copy acknowledges the original.
  const nag = { everyMs: 1_000, times: 50, escalate: { after: 2, to: 'boss' } };
  const reminded = await notify('ada', { category: 'info', title: 'Answer', nag });
  const isReminded = ({ notificationId }: SocketMessage): boolean =>
    notificationId === reminded.notificationId;
  await screen.receive(
    'notify.notification',
    (message) => isReminded(message) && message['reminder'] === 2,
  );
  const copy = await openOf(shop, 'boss');
  assert.equal(copy['title'], 'Answer');
  const path = `${base}/boss/notifications/${String(copy['notificationId'])}/acknowledge`;
  assert.equal((await shop.ask('POST', path)).status, 204);
  await screen.receive('notify.acknowledged', isReminded);
  const reminders = screen.received.filter(
    (message) => isReminded(message) && message.type === 'notify.notification',
  );
  assert.deepEqual(
    reminders.map(({ reminder }) => reminder),
    reminders.map((_, index) => index),
  );

  const { subscriptions } = rig.platform.engines;
  const outbox = outboxOf(rig.platform);
  await until('all mails and webhooks are sent', async () => {
    const { SENT, PENDING, CLAIMED, FAILED } = await outbox.counts();
    return SENT === 2 && PENDING + CLAIMED + FAILED === 0;
  });
  assert.equal((await outbox.counts()).DEAD, 0);
  assert.equal(await subscriptions.deadLetters.count({}), 0);
}

async function openOf(
  shop: ApiCaller,
  customer: string,
): Promise<Readonly<Record<string, unknown>>> {
  let found: Readonly<Record<string, unknown>> | undefined;
  await until(`${customer} is notified`, async () => {
    const path = `${base}/${customer}/notifications?open=true`;
    const { body } = await shop.ask<{ items: Record<string, unknown>[] }>('GET', path);
    [found] = body.items;
    return found !== undefined;
  });
  return found ?? {};
}

async function startHooks(): Promise<
  AsyncDisposable & { readonly url: string; readonly bodies: readonly string[] }
> {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      bodies.push(body);
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    bodies,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
