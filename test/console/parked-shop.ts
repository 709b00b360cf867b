// A module that parks streams, for tests of the console.

import { defineModule, type PlatformModule } from '../../src/platform/index.ts';
import { subscription, Terminal } from '../../src/subscriptions/index.ts';
import { until } from '../../src/testing/support/server/api-rig.ts';
import type { ConsoleRig } from './console-rig.ts';

/** Its handler rejects the first event of each order until `isFixed`. */
export function parkedShop(): {
  readonly module: PlatformModule;
  readonly state: { isFixed: boolean };
  /** The revisions that were handled, by stream. */
  readonly handled: Readonly<Record<string, number[]>>;
} {
  const state = { isFixed: false };
  const handled: Record<string, number[]> = {};
  const mail = subscription({
    name: 'sub:shop:mail:v1',
    filter: { category: 'shop.order.v1' },
    onDeadLetter: 'park',
    handler: ({ stream, revision, payload }) => {
      const { to } = payload as { readonly to: string };
      if (revision === 0 && !state.isFixed) throw new Terminal(`no such mailbox: ${to}`);
      (handled[stream] ??= []).push(revision);
    },
  });
  return { module: defineModule({ name: 'shop', subscriptions: [mail] }), state, handled };
}

/** Appends events to an order, and waits until all but the first wait. */
export async function park(rig: ConsoleRig, id: string, events: number): Promise<void> {
  const types = ['placed', 'paid', 'packed', 'shipped', 'delivered'];
  for (let at = 0; at < events; at += 1) {
    await rig.append(`order.${types[at % types.length] ?? 'placed'}.v1`, {
      id,
      payload: { to: 'ada@example.com', order: `o-${id}`, lines: [{ sku: 'mill-7', quantity: 2 }] },
      correlationId: `checkout-${id}`,
    });
  }
  const { deadLetters, waiting } = rig.api.platform.engines.subscriptions;
  await until(async () => {
    const stream = `shop.order.v1-core-${id}`;
    const [letter] = await deadLetters.list({ stream, parked: true });
    if (letter === undefined) return false;
    const key = { subscription: letter.handler, shard: letter.shard };
    return (await waiting.countOf(key, stream)) === events;
  });
}
