// The conformance suite of destinations, for Millrace and for users with their own destinations.
// Cases that a fixture cannot arrange are skipped by the name of their capability.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { eventually, eventuallyMs } from '../../assertions.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { createDelivery } from '../../../delivery/create-delivery.ts';
import { idempotencyKeyOf } from '../../../contracts/idempotency-key.ts';
import type { DeliveryMessage } from '../../../delivery/delivery-message.ts';
import type { DeliveryOutcome } from '../../../delivery/delivery-outcome.ts';
import type { DeliveryContext, Destination } from '../../../delivery/destination.ts';

/** One message as the receiver saw it. */
export interface Received {
  readonly idempotencyKey: string;
  /** The `text` of the payload, wherever the destination puts it. */
  readonly text: string;
}

/** Provides the destination under test and controls its receiver. */
export interface DestinationFixture {
  readonly destination: Destination;
  /** Additional payload fields that the destination needs. */
  readonly message?: Partial<DeliveryMessage>;
  /** All messages received so far. */
  received(): Promise<readonly Received[]>;
  /** Capability `dedupes`: the receiver itself detects duplicates by key. */
  readonly dedupes?: true;
  /** Capability `away`: the receiver is unreachable until the result is called. */
  away?(): Promise<() => Promise<void>>;
  /** Capability `busy`: the receiver reports overload until the result is called. */
  busy?(): Promise<() => Promise<void>>;
  /** Capability `rejects`: the receiver rejects permanently until the result is called. */
  rejects?(): Promise<() => Promise<void>>;
  /** Capability `silent`: the receiver accepts messages without a response until the result is called. */
  silent?(): Promise<() => Promise<void>>;
  /** Capability `secrets`: texts that no outcome may show. */
  readonly secrets?: readonly string[];
}

export interface DestinationCase {
  /** A sentence. */
  readonly name: string;
  /** Why the case is skipped: `needs away`. */
  readonly skip?: string | undefined;
  /** Rejects if the destination fails the case. */
  readonly run: () => Promise<void>;
}

type Capability = 'dedupes' | 'away' | 'busy' | 'rejects' | 'silent' | 'secrets';
type Body = (fixture: DestinationFixture) => Promise<void>;
type Cases = Readonly<Record<string, Body | { readonly needs: Capability; readonly run: Body }>>;

const cases: Cases = {
  async 'a message arrives with its payload and idempotency key'(fixture) {
    const message = newMessage(fixture);
    assert.equal((await send(fixture, message)).kind, 'sent');
    const [found] = await whenReceived(fixture, message);
    assert.equal(found?.text, message.payload['text']);
  },

  async 'a second attempt carries the key of the first'(fixture) {
    const message = newMessage(fixture);
    assert.equal((await send(fixture, message)).kind, 'sent');
    assert.equal((await send(fixture, message, { attempt: 2 })).kind, 'sent');
    await whenReceived(fixture, message, fixture.dedupes === true ? 1 : 2);
  },

  'the receiver stores a repeated message once': {
    needs: 'dedupes',
    async run(fixture) {
      const message = newMessage(fixture);
      for (const attempt of [1, 2, 3]) {
        assert.equal((await send(fixture, message, { attempt })).kind, 'sent');
      }
      const last = newMessage(fixture);
      await send(fixture, last);
      await whenReceived(fixture, last);
      assert.equal((await whenReceived(fixture, message)).length, 1);
    },
  },

  async 'an idempotency key chosen by the mapper arrives'(fixture) {
    const message = newMessage(fixture, { headers: { idempotencyKey: `chosen-${randomUUID()}` } });
    assert.equal((await send(fixture, message)).kind, 'sent');
    assert.equal((await whenReceived(fixture, message)).length, 1);
  },

  async 'concurrent messages arrive, each with its own key and text'(fixture) {
    const messages = Array.from({ length: 20 }, () => newMessage(fixture));
    const outcomes = await Promise.all(messages.map((message) => send(fixture, message)));
    assert.deepEqual(new Set(outcomes.map(({ kind }) => kind)), new Set(['sent']));
    for (const message of messages) {
      const [found] = await whenReceived(fixture, message);
      assert.equal(found?.text, message.payload['text']);
    }
  },

  async 'text of any language arrives unchanged'(fixture) {
    const text = `Grüße, 世界 🌍 "quoted" <b>&amp;</b> ${randomUUID()}`;
    const message = newMessage(fixture, { payload: { text } });
    assert.equal((await send(fixture, message)).kind, 'sent');
    assert.equal((await whenReceived(fixture, message))[0]?.text, text);
  },

  async 'the message is not changed'(fixture) {
    const message = newMessage(fixture);
    const before = structuredClone(message);
    deepFreeze(message);
    assert.equal((await send(fixture, message)).kind, 'sent');
    assert.deepEqual(message, before);
  },

  async 'nothing is sent once the signal has fired'(fixture) {
    const message = newMessage(fixture);
    const outcome = await send(fixture, message, { signal: AbortSignal.abort() });
    assert.equal(outcome.kind, 'retry');
    const last = newMessage(fixture);
    await send(fixture, last);
    await whenReceived(fixture, last);
    assert.equal((await receivedOf(fixture, message)).length, 0);
  },

  'an unavailable receiver is a retry, and the message arrives later': {
    needs: 'away',
    async run(fixture) {
      const message = newMessage(fixture);
      const back = await fixture.away?.();
      assert.equal((await send(fixture, message)).kind, 'retry');
      await back?.();
      await eventually('it is sent', async () => (await send(fixture, message)).kind === 'sent');
      await whenReceived(fixture, message);
    },
  },

  'a busy receiver is a retry': {
    needs: 'busy',
    async run(fixture) {
      const message = newMessage(fixture);
      const over = await fixture.busy?.();
      const outcome = await send(fixture, message);
      await over?.();
      assert.equal(outcome.kind, 'retry');
      assert.equal((await send(fixture, message)).kind, 'sent');
    },
  },

  'a permanent rejection is a dead letter with its reason': {
    needs: 'rejects',
    async run(fixture) {
      const over = await fixture.rejects?.();
      const outcome = await send(fixture, newMessage(fixture));
      await over?.();
      assert.equal(outcome.kind, 'dead');
      assert.ok(outcome.kind === 'dead' && outcome.error.length > 3);
      assert.equal((await send(fixture, newMessage(fixture))).kind, 'sent');
    },
  },

  'a silent receiver does not delay the call beyond its signal': {
    needs: 'silent',
    async run(fixture) {
      const over = await fixture.silent?.();
      const stop = new AbortController();
      const call = send(fixture, newMessage(fixture), { signal: stop.signal });
      const first = await Promise.race([call, systemClock.sleep(50).then(() => 'waits')]);
      assert.equal(first, 'waits');
      stop.abort();
      const outcome = await call;
      await over?.();
      assert.equal(outcome.kind, 'retry');
      assert.equal((await send(fixture, newMessage(fixture))).kind, 'sent');
    },
  },

  'no outcome shows a secret': {
    needs: 'secrets',
    async run(fixture) {
      for (const fault of ['rejects', 'busy', 'away'] as const) {
        const over = await fixture[fault]?.();
        const shown = JSON.stringify(await send(fixture, newMessage(fixture)));
        await over?.();
        for (const secret of fixture.secrets ?? []) assert.ok(!shown.includes(secret), shown);
      }
    },
  },

  async 'works with rate limits and a circuit breaker'(fixture) {
    const { deliver } = createDelivery({
      destinations: { conformance: { send: fixture.destination, timeoutMs: eventuallyMs } },
    });
    const message = newMessage(fixture, { integrationType: 'conformance:one' });
    assert.equal((await deliver(message)).kind, 'sent');
    assert.equal((await whenReceived(fixture, message)).length, 1);
  },
};

/**
 * All cases, for any test runner; they run one after the other on one fixture.
 *
 * @example
 * import { test } from 'node:test';
 * import type { Destination } from 'millrace/delivery';
 * import { destinationConformance, type Received } from 'millrace/testing';
 *
 * const arrived: Received[] = [];
 * const destination: Destination = async ({ payload }, { idempotencyKey, signal }) => {
 *   signal.throwIfAborted();
 *   arrived.push({ idempotencyKey, text: String(payload['text']) });
 * };
 * const fixture = { destination, received: async () => arrived };
 * for (const { name, skip, run } of destinationConformance(fixture)) test(name, { skip: skip ?? false }, run);
 */
export function destinationConformance(fixture: DestinationFixture): readonly DestinationCase[] {
  return Object.entries(cases).map(([name, each]) => {
    const { needs, run } = typeof each === 'function' ? { needs: undefined, run: each } : each;
    const isMissing = needs !== undefined && fixture[needs] === undefined;
    return {
      name,
      skip: isMissing ? `needs ${needs}` : undefined,
      run: () => run(fixture),
    };
  });
}

function newMessage(
  fixture: DestinationFixture,
  fields: Partial<DeliveryMessage> = {},
): DeliveryMessage {
  return {
    id: randomUUID(),
    integrationType: 'conformance',
    eventType: 'conformance.checked.v1',
    sourceStreamId: 'conformance.check.v1-core-1',
    sourceEventId: randomUUID(),
    tenantId: 'core',
    correlationId: randomUUID(),
    occurredAt: '2025-09-30T10:00:00.000Z',
    ...fixture.message,
    ...fields,
    payload: { ...fixture.message?.payload, text: `text ${randomUUID()}`, ...fields.payload },
  };
}

/** Calls the destination like `createDelivery`, without its time limit: errors become outcomes. */
async function send(
  { destination }: DestinationFixture,
  message: DeliveryMessage,
  context: Partial<DeliveryContext> = {},
): Promise<DeliveryOutcome> {
  const { deliver } = createDelivery({
    destinations: {
      [message.integrationType]: async (each, given) =>
        destination(each, { ...given, signal: context.signal ?? given.signal }),
    },
  });
  const { attempt = 1 } = context;
  return deliver(message, { attempt });
}

async function receivedOf(
  fixture: DestinationFixture,
  message: DeliveryMessage,
): Promise<readonly Received[]> {
  const key = idempotencyKeyOf(message);
  return (await fixture.received()).filter(({ idempotencyKey }) => idempotencyKey === key);
}

async function whenReceived(
  fixture: DestinationFixture,
  message: DeliveryMessage,
  count = 1,
): Promise<readonly Received[]> {
  await eventually(`${count} arrive`, async () => {
    return (await receivedOf(fixture, message)).length >= count;
  });
  return receivedOf(fixture, message);
}

function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const each of Object.values(value)) deepFreeze(each);
}
