// A broadcast goes to every customer of a tenant: its events and commands, the aggregate, the read model, and the
// reactor that copies it into the inboxes.

import { defineAggregate } from 'millrace/aggregates';
import { defineCommand, defineEvent, subjectActions, Type, type EventOf } from 'millrace/contracts';
import { hasCode, idFromKey } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import { projection, readModel, type DocumentQueries } from 'millrace/projections';
import { reactor, type Reaction, type Reactor } from 'millrace/reactors';
import type { Position } from 'millrace/store';
import { timeOf } from './customer-due.ts';
import { notifyCustomer } from './customer-events.ts';
import { customerLimits as limits } from './customer-limits.ts';
import { customerProjection, type CustomerDocument } from './customer-projections.ts';
import { instant as at, oneOf, present, schemaOf, text } from './customer-schemas.ts';

const broadcastCategories = subjectActions.notify.broadcast;
export type BroadcastCategory = (typeof broadcastCategories)[number];

export const broadcastFields = {
  category: oneOf(broadcastCategories),
  title: text(limits.titleCharsMax),
  body: Type.Optional(text(limits.bodyCharsMax)),
};
const reached = Type.Integer({ minimum: 0 });
const cursor = Type.String({ minLength: 1, maxLength: 1_000 });

export const broadcastPublished = defineEvent(
  'broadcast.published.v1',
  schemaOf({ at, ...broadcastFields }),
);
/** `cursor` points after the last customer that was notified. */
export const broadcastAdvanced = defineEvent(
  'broadcast.advanced.v1',
  schemaOf({ cursor, reached }),
);
export const broadcastCompleted = defineEvent('broadcast.completed.v1', schemaOf({ reached }));
/**
 * Notifies all customers of the tenant.
 *
 * @example
 * import { publishBroadcast } from 'millrace/customers';
 *
 * console.log(publishBroadcast({ category: 'maintenance', title: 'Sunday, 2 to 3' }).type);
 */
export const publishBroadcast = defineCommand('broadcast.publish', schemaOf(broadcastFields));
export const advanceBroadcast = defineCommand(
  'broadcast.advance',
  schemaOf({
    /** The value of `reached` before this page. */
    before: reached,
    reached,
    /** Null after the last page. */
    cursor: Type.Union([cursor, Type.Null()]),
  }),
);

/**
 * The events of a broadcast.
 *
 * @example
 * import { broadcastEvents } from 'millrace/customers';
 *
 * console.log(broadcastEvents.published.type); // broadcast.published.v1
 */
export const broadcastEvents = {
  published: broadcastPublished,
  advanced: broadcastAdvanced,
  completed: broadcastCompleted,
} as const;

type BroadcastEvent = EventOf<(typeof broadcastEvents)[keyof typeof broadcastEvents]>;

export interface BroadcastState {
  readonly status: 'none' | 'spreading' | 'completed';
  readonly category?: BroadcastCategory;
  readonly title: string;
  readonly body?: string;
  /** Customers that have been notified. */
  readonly reached: number;
}

const none: BroadcastState = { status: 'none', title: '', reached: 0 };

/**
 * The aggregate `broadcast`.
 *
 * @example
 * import { broadcast, publishBroadcast } from 'millrace/customers';
 * import { given } from 'millrace/testing';
 *
 * given(broadcast, [])
 *   .when(publishBroadcast({ category: 'maintenance', title: 'Sunday, 2 to 3' }))
 *   .thenState(({ status }) => status === 'spreading');
 */
export const broadcast = defineAggregate({
  bc: 'notify',
  name: 'broadcast',
  version: 1,
  events: [broadcastPublished, broadcastAdvanced, broadcastCompleted],
  commands: [publishBroadcast, advanceBroadcast],
  initial: none,
  evolve: {
    'broadcast.published.v1': (_state, { at: _time, ...content }): BroadcastState => ({
      ...content,
      status: 'spreading',
      reached: 0,
    }),
    'broadcast.advanced.v1': (state, { reached: count }): BroadcastState => ({
      ...state,
      reached: count,
    }),
    'broadcast.completed.v1': (state, { reached: count }): BroadcastState => ({
      ...state,
      status: 'completed',
      reached: count,
    }),
  },
  decide: {
    'broadcast.publish': (content, { status }, { nowMs }) =>
      status === 'none' ? broadcastPublished({ at: timeOf(nowMs), ...content }) : [],
    'broadcast.advance': (page, state) => {
      // Another process has already recorded this page.
      if (state.status !== 'spreading' || page.before !== state.reached) return [];
      return page.cursor === null
        ? broadcastCompleted({ reached: page.reached })
        : broadcastAdvanced({ reached: page.reached, cursor: page.cursor });
    },
  },
});

export interface BroadcastDocument {
  readonly broadcastId: string;
  readonly category: BroadcastCategory;
  readonly title: string;
  readonly body: string | null;
  readonly at: string;
  readonly status: 'spreading' | 'completed';
  readonly reached: number;
}

/**
 * The read model of broadcasts, ordered by time: `app:{core}:notify:broadcast:v1:<id>`.
 *
 * @example
 * import { broadcastProjection } from 'millrace/customers';
 *
 * console.log(broadcastProjection.readModel.name); // notify.broadcast.v1
 */
export const broadcastProjection = projection<
  BroadcastDocument,
  { [Event in BroadcastEvent as Event['type']]: Event['payload'] }
>({
  name: 'sub:notify:broadcast-projection:v1',
  readModel: readModel({
    bc: 'notify',
    aggregate: 'broadcast',
    version: 1,
    ranges: { at: (document) => Date.parse(document.at) },
  }),
  on: {
    'broadcast.published.v1': (_before, { payload, aggregate }) => ({
      broadcastId: aggregate.id,
      ...payload,
      body: payload.body ?? null,
      status: 'spreading',
      reached: 0,
    }),
    'broadcast.advanced.v1': (before, { payload }) =>
      before === null ? null : { ...before, reached: payload.reached },
    'broadcast.completed.v1': (before, { payload }) =>
      before === null ? null : { ...before, reached: payload.reached, status: 'completed' },
  },
});

/** Customers per page: progress is recorded after each page. */
const pageSize = 100;

interface FanOutPage {
  readonly tenant: string;
  readonly broadcastId: string;
  readonly position: Position;
  /** Customers that were notified by the pages before. */
  readonly before: number;
  readonly cursor?: string;
  readonly signal: AbortSignal;
}

/**
 * Copies a broadcast into the inboxes of all customers of its tenant, one page at a time. After a crash it continues
 * with the current page; the notification ids are derived, so no customer is notified twice.
 */
export function broadcastFanOut({
  documents,
  load,
  waitFor,
}: Pick<ModuleContext, 'documents' | 'load' | 'waitFor'>): Reactor {
  return reactor({
    name: 'sub:notify:broadcast-fan-out:v1',
    from: 'start',
    events: [broadcastPublished, broadcastAdvanced],
    // A full inbox rejects the broadcast; the other customers still get it.
    onRejected: 'ignore',
    on: {
      'broadcast.published.v1': ({ tenant, aggregate, position }, { signal }) =>
        notifyPage({ tenant, broadcastId: aggregate.id, position, before: 0, signal }),
      'broadcast.advanced.v1': ({ tenant, aggregate, position, payload }, { signal }) =>
        notifyPage({
          tenant,
          broadcastId: aggregate.id,
          position,
          before: payload.reached,
          cursor: payload.cursor,
          signal,
        }),
    },
  });

  async function notifyPage(page: FanOutPage): Promise<readonly Reaction[]> {
    const { tenant, broadcastId, position, before, signal } = page;
    // The list must include every customer that existed when the broadcast was published.
    await waitFor(customerProjection, position, { signal });
    const customers = documents(customerProjection.readModel) as DocumentQueries<CustomerDocument>;
    const { state } = await load(broadcast, { tenant, id: broadcastId, signal });
    const found = await readPage(page.cursor, (after) =>
      customers.bySet(tenant, 'all', { limit: pageSize, cursor: after }),
    );
    const count = (found.isRestarted ? 0 : before) + found.items.length;
    return [
      ...found.items.map(({ document }) => toReaction(document.customerId, page, state)),
      {
        id: broadcastId,
        command: advanceBroadcast({ before, reached: count, cursor: found.cursor ?? null }),
      },
    ];
  }
}

/** Starts over when a rebuild of the read model has invalidated the cursor: duplicates are ignored by the inboxes. */
async function readPage<Found extends object>(
  after: string | undefined,
  read: (after: string | undefined) => Promise<Found>,
): Promise<Found & { readonly isRestarted: boolean }> {
  try {
    return { ...(await read(after)), isRestarted: false };
  } catch (error) {
    if (!hasCode(error, 'CURSOR_INVALID')) throw error;
    return { ...(await read(undefined)), isRestarted: true };
  }
}

function toReaction(
  customerId: string,
  { tenant, broadcastId }: FanOutPage,
  { category = 'announcement', title, body }: BroadcastState,
): Reaction {
  const notificationId = idFromKey(`broadcast ${tenant} ${broadcastId} ${customerId}`);
  const content = present({ notificationId, category, title, body });
  return { id: customerId, command: notifyCustomer(content) };
}
