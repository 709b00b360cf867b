// Runs payments on any engines: completed, declined, without funds, and without a response from the provider.
// Checks the documents, the webhook and the topic afterwards.

import assert from 'node:assert/strict';
import { verifyWebhook, webhookDestination } from '../../src/destinations/webhook/index.ts';
import type { DeliveryMessage } from '../../src/delivery/index.ts';
import {
  createPlatform,
  platformRoles,
  type Platform,
  type PlatformConfig,
  type PlatformRole,
} from '../../src/platform/index.ts';
import { startHttpReceiver, type HttpReceiver } from '../../src/testing/index.ts';
import {
  createCurrency,
  openAccount,
  payments,
  pretendProvider,
  processJobId,
  requestPayment,
  type AccountDocument,
  type PaymentDocument,
  type PaymentProvider,
  type PretendProvider,
} from '../../modules/payments/index.ts';
import { until } from '../store/rig.ts';
import { outboxOf } from './outbox-of.ts';

/** The engines and other settings of the platform, such as a queue between the ledger and its workers. */
export interface ScenarioConfig extends Omit<PlatformConfig, 'modules' | 'roles'> {
  /** The roles of each platform; commands go to the first one. Default: one platform with all roles. */
  readonly roles?: readonly (readonly PlatformRole[])[] | undefined;
}

interface World {
  readonly config: ScenarioConfig;
  readonly provider: PretendProvider;
  readonly receiver: HttpReceiver;
  /** The messages published to the topic. */
  readonly topic: DeliveryMessage[];
}

const tenant = 'core';
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const amountMax = 50_000;

const reportedBefore = {
  'p-made': 'payment.completed.v1',
  'p-declined': 'payment.failed.v1',
  'p-poor': 'payment.failed.v1',
};

/** The documents stay, so that a test can check how an engine stores them. */
export async function paymentsScenario(config: ScenarioConfig): Promise<void> {
  await using receiver = await startHttpReceiver();
  const world: World = { config, provider: pretendProvider({ amountMax }), receiver, topic: [] };
  await answeredPayments(world);
  await unansweredPayment(world);
}

async function answeredPayments(world: World): Promise<void> {
  await using running = await start(world);
  const { platform } = running;
  await ask(platform, 'USD', createCurrency({ name: 'US Dollar', decimals: 2, enabled: true }));
  await ask(platform, 'a-1', openAccount({ currency: 'USD', balance: 100_000 }));
  await pay(platform, 'p-made', { amount: 1_250 });
  await pay(platform, 'p-declined', { amount: amountMax + 1 });
  await ended(platform, ['p-made', 'p-declined']);
  await pay(platform, 'p-poor', { amount: 98_751 });
  await ended(platform, ['p-poor']);

  assert.deepEqual(await shown(platform, 'p-made'), {
    status: 'completed',
    reference: 'pretended-p-made',
    reason: undefined,
  });
  assert.deepEqual(await shown(platform, 'p-declined'), failedFor('limit-exceeded'));
  assert.deepEqual(await shown(platform, 'p-poor'), failedFor('insufficient-funds'));
  await accountHasBalance(platform, 98_750);
  assert.deepEqual(
    world.provider.charges,
    new Map([
      [processJobId(tenant, 'p-made'), { kind: 'accepted', reference: 'pretended-p-made' }],
      [processJobId(tenant, 'p-declined'), { kind: 'declined', reason: 'limit-exceeded' }],
    ]),
  );
  await documentsAreIndexed(platform);
  await isOneFlow(platform);
  await outcomesAreReported(world, platform, reportedBefore);
}

/** Restarts the platform with short timeouts; the provider never responds to the only open payment. */
async function unansweredPayment(world: World): Promise<void> {
  await using running = await start(world, { answerWithinMs: 500, providerTimeoutMs: 500 });
  const { platform } = running;
  await ask(platform, 'a-2', openAccount({ currency: 'USD', balance: 500 }));
  await pay(platform, 'p-silent', { amount: 500, creditor: 'silent', account: 'a-2' });
  await ended(platform, ['p-silent']);
  assert.deepEqual(await shown(platform, 'p-silent'), failedFor('no-answer'));
  await accountHasBalance(platform, 500, 'a-2');
  const cancelled = { kind: 'declined', reason: 'cancelled' };
  await until('the charge is cancelled at the provider', () => {
    const charge = world.provider.charges.get(processJobId(tenant, 'p-silent'));
    return JSON.stringify(charge) === JSON.stringify(cancelled);
  });
  await outcomesAreReported(world, platform, {
    ...reportedBefore,
    'p-silent': 'payment.failed.v1',
  });
}

async function start(
  { config, provider, receiver, topic }: World,
  { answerWithinMs = 600_000, providerTimeoutMs = 60_000 } = {},
): Promise<AsyncDisposable & { readonly platform: Platform }> {
  await using opened = new AsyncDisposableStack();
  const webhook = opened.use(
    webhookDestination({
      endpoint: { id: 'shop', url: receiver.url, secrets: [secret] },
      allowAddresses: ['127.0.0.1/32'],
      allowHttp: true,
    }),
  );
  const run = async (roles: readonly PlatformRole[]): Promise<Platform> => {
    const platform = opened.use(
      await createPlatform({
        ...config,
        roles,
        dispatcher: {
          tickIntervalMs: 50,
          schedule: { initialMs: 100, factor: 2, capMs: 5_000, jitterMs: 0 },
          ...config.dispatcher,
        },
        modules: [
          payments({
            provider: silentForOneCreditor(provider),
            providerTimeoutMs,
            answerWithinMs,
            webhooks: { shop: webhook },
            kafka: async (message) => void topic.push(message),
          }),
        ],
      }),
    );
    await platform.start();
    return platform;
  };
  const [first = platformRoles, ...others] = config.roles ?? [];
  const platform = await run(first);
  for (const roles of others) await run(roles);
  const all = opened.move();
  return { platform, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Does not respond to charges of the creditor `silent` until they are cancelled. */
function silentForOneCreditor(provider: PretendProvider): PaymentProvider {
  return {
    ...provider,
    charge(charge, context) {
      const isSilent = charge.creditor === 'silent' && !provider.charges.has(charge.key);
      if (!isSilent) return provider.charge(charge, context);
      return new Promise((_resolve, reject) => {
        const end = (): void => reject(new Error('the provider does not respond'));
        context.signal.addEventListener('abort', end, { once: true });
      });
    },
  };
}

function ask(platform: Platform, id: string, command: { type: string; payload: unknown }) {
  return platform.handle({ tenant, id, command });
}

function pay(platform: Platform, id: string, order: Partial<PaymentDocument>) {
  const common = { account: 'a-1', amount: 1, currency: 'USD', creditor: 'shop-1' };
  const { account, amount, currency, creditor } = { ...common, ...order };
  return ask(platform, id, requestPayment({ account, amount, currency, creditor }));
}

const paymentsOf = (platform: Platform) =>
  platform.documents({ bc: 'paymenthub', aggregate: 'payment' });

async function documentOf(platform: Platform, id: string): Promise<PaymentDocument | undefined> {
  const found = await paymentsOf(platform).get(tenant, id);
  return found?.document as PaymentDocument | undefined;
}

async function ended(platform: Platform, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await until(`${id} has ended`, async () => {
      const status = (await documentOf(platform, id))?.status;
      return status === 'completed' || status === 'failed';
    });
  }
}

async function shown(platform: Platform, id: string): Promise<unknown> {
  const { status, reference, reason } = (await documentOf(platform, id)) ?? {};
  return { status, reference, reason };
}

function failedFor(reason: string): unknown {
  return { status: 'failed', reference: undefined, reason };
}

/** Waits until nothing is reserved and the account has this balance. */
async function accountHasBalance(platform: Platform, balance: number, id = 'a-1'): Promise<void> {
  const accounts = platform.documents({ bc: 'banking', aggregate: 'account' });
  let document: AccountDocument | undefined;
  await until(`nothing is reserved in ${id}`, async () => {
    document = (await accounts.get(tenant, id))?.document as AccountDocument | undefined;
    return document?.reserved === 0 && document.balance === balance;
  });
}

async function documentsAreIndexed(platform: Platform): Promise<void> {
  const currencies = platform.documents({ bc: 'banking', aggregate: 'currency' });
  assert.equal((await currencies.byIndex(tenant, 'code', 'USD'))?.id, 'USD');
  const ids = async (set: string): Promise<string[]> => {
    const { items } = await paymentsOf(platform).bySet(tenant, set);
    return items.map(({ id }) => id).toSorted();
  };
  assert.deepEqual(await ids('all'), ['p-declined', 'p-made', 'p-poor']);
  assert.deepEqual(await ids('completed'), ['p-made']);
  assert.deepEqual(await ids('failed'), ['p-declined', 'p-poor']);
  assert.deepEqual(await ids('queued'), []);
  const latest = await paymentsOf(platform).byRange(tenant, 'updated', { direction: 'descending' });
  assert.equal(latest.items[0]?.id, 'p-poor');
}

/** All events of a payment, from the command to the completion, have one correlation id. */
async function isOneFlow({ engines: { store } }: Platform): Promise<void> {
  const events = await store.readStream('paymenthub.payment.v1-core-p-made').toArray();
  assert.deepEqual(
    events.map(({ type }) => type),
    ['payment.requested.v1', 'payment.queued.v1', 'payment.processed.v1', 'payment.completed.v1'],
  );
  assert.equal(new Set(events.map(({ correlationId }) => correlationId)).size, 1);
}

async function outcomesAreReported(
  { receiver, topic }: World,
  platform: Platform,
  expected: Readonly<Record<string, string>>,
): Promise<void> {
  // Webhooks arrive at least once; receivers deduplicate by the id, as this map does.
  const hooks = (): Map<string, [string, string]> =>
    new Map(
      receiver.requests.map(({ body, headers }) => {
        const { id } = verifyWebhook({ body, headers, secrets: [secret] });
        const { type, data } = JSON.parse(body) as { type: string; data: { paymentId: string } };
        return [id, [data.paymentId, type]];
      }),
    );
  const posts = (): Map<string, [string, string]> =>
    new Map(
      topic.map(({ sourceEventId, payload, eventType }) => [
        sourceEventId,
        [String(payload['paymentId']), eventType],
      ]),
    );
  const count = Object.keys(expected).length;
  await until('all outcomes are reported', () => hooks().size >= count && posts().size >= count);
  await drained(platform);
  for (const received of [hooks(), posts()]) {
    assert.deepEqual(Object.fromEntries(received.values()), expected);
    assert.equal(received.size, count, 'an outcome was reported twice');
  }
}

async function drained(platform: Platform): Promise<void> {
  const outbox = outboxOf(platform);
  await until('the ledger has no unsent message', async () => {
    const counts = await outbox.counts();
    return counts.PENDING + counts.CLAIMED + counts.FAILED === 0;
  });
  assert.equal((await outbox.counts()).DEAD, 0);
  assert.equal(await platform.engines.subscriptions.deadLetters.count({}), 0);
}
