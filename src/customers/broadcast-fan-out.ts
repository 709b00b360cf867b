// From a broadcast to the inboxes of all customers of its tenant, a page at a time: killed on the way, it goes on
// with the page that it was at, and whoever was told already is not told again.

import { hasCode } from '../foundation/error.ts';
import { idFromKey } from '../foundation/ids.ts';
import type { ModuleContext } from '../platform/modules/platform-module.ts';
import type { DocumentQueries } from '../projections/documents.ts';
import type { Reaction } from '../reactors/reaction.ts';
import { reactor, type Reactor } from '../reactors/reactor.ts';
import type { Position } from '../store/position.ts';
import { broadcast, type BroadcastState } from './broadcast.ts';
import { advanceBroadcast, broadcastAdvanced, broadcastPublished } from './broadcast-events.ts';
import { notifyCustomer } from './customer-events.ts';
import { customerProjection, type CustomerDocument } from './customer-projection.ts';

const fanOutLimits = {
  /** Customers that are told before it is written down how far it has come. */
  pageSize: 100,
} as const;

type FanOutContext = Pick<ModuleContext, 'documents' | 'load' | 'waitFor'>;

interface Page {
  readonly tenant: string;
  readonly broadcastId: string;
  readonly position: Position;
  /** Customers that were told before it. */
  readonly before: number;
  readonly cursor?: string;
  readonly signal: AbortSignal;
}

export function broadcastFanOut({ documents, load, waitFor }: FanOutContext): Reactor {
  return reactor({
    name: 'sub:notify:broadcast-fan-out:v1',
    from: 'start',
    events: [broadcastPublished, broadcastAdvanced],
    // An inbox that is full: the others are told nevertheless.
    onRefused: 'ignore',
    on: {
      'broadcast.published.v1': ({ tenant, aggregate, position }, { signal }) =>
        tellPage({ tenant, broadcastId: aggregate.id, position, before: 0, signal }),
      'broadcast.advanced.v1': ({ tenant, aggregate, position, payload }, { signal }) => {
        const { cursor, reached: before } = payload;
        return tellPage({ tenant, broadcastId: aggregate.id, position, before, cursor, signal });
      },
    },
  });

  async function tellPage(page: Page): Promise<readonly Reaction[]> {
    const { tenant, broadcastId, position, before, cursor, signal } = page;
    // Who was a customer before it was published is told of it, however far behind the list is.
    await waitFor(customerProjection, position, { signal });
    const { bc, aggregate } = customerProjection.readModel;
    const customers = documents({ bc, aggregate }) as DocumentQueries<CustomerDocument>;
    const { state } = await load(broadcast, { tenant, id: broadcastId, signal });
    const {
      items,
      cursor: next,
      isAnew,
    } = await pageBehind(cursor, (behind) =>
      customers.bySet(tenant, 'all', { limit: fanOutLimits.pageSize, cursor: behind }),
    );
    const reached = (isAnew ? 0 : before) + items.length;
    return [
      ...items.map(({ document: { customerId } }) => messageFor(customerId, page, state)),
      {
        id: broadcastId,
        command: advanceBroadcast({ before, reached, cursor: next ?? null }),
      },
    ];
  }
}

/** The list was built anew meanwhile: from its begin, as whoever was told is not told again. */
async function pageBehind<Found extends object>(
  cursor: string | undefined,
  read: (cursor: string | undefined) => Promise<Found>,
): Promise<Found & { readonly isAnew: boolean }> {
  try {
    return { ...(await read(cursor)), isAnew: false };
  } catch (error) {
    if (!hasCode(error, 'CURSOR_INVALID')) throw error;
    return { ...(await read(undefined)), isAnew: true };
  }
}

function messageFor(
  customerId: string,
  { tenant, broadcastId }: Page,
  { category = 'announcement', title, body }: BroadcastState,
): Reaction {
  const notificationId = idFromKey(`broadcast ${tenant} ${broadcastId} ${customerId}`);
  const words = { category, title, ...(body === undefined ? {} : { body }) };
  return { id: customerId, command: notifyCustomer({ notificationId, ...words }) };
}
