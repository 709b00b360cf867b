// A broadcast goes to every customer of a tenant: its events and commands, the aggregate, the read model, and the
// reactor that copies it into the inboxes.

import { defineAggregate } from 'millrace/aggregates';
import {
  compileSchema,
  defineCommand,
  defineEvent,
  subjectActions,
  Type,
} from 'millrace/contracts';
import { hasCode, idFromKey } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import {
  projection,
  readModel,
  type DocumentQueries,
  type ProjectedEvent,
} from 'millrace/projections';
import { reactor, type Reaction, type Reactor } from 'millrace/reactors';
import type { Position } from 'millrace/store';
import { timeOf } from './customer-due.ts';
import { notifyCustomer } from './customer-events.ts';
import { customerLimits as limits } from './customer-limits.ts';
import { customerProjection, type CustomerDocument } from './customer-projections.ts';
import { fields, present } from './customer-schemas.ts';

const { instant: at, closed, oneOf, text } = fields;

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
  compileSchema(Type.Object({ at, ...broadcastFields }, closed)),
);
/** `cursor` points after the last customer that was notified. */
export const broadcastAdvanced = defineEvent(
  'broadcast.advanced.v1',
  compileSchema(Type.Object({ cursor, reached }, closed)),
);
export const broadcastCompleted = defineEvent(
  'broadcast.completed.v1',
  compileSchema(Type.Object({ reached }, closed)),
);
/**
 * Notifies all customers of the tenant.
 *
 * @example
 * import { publishBroadcast } from 'millrace/customers';
 *
 * console.log(publishBroadcast({ category: 'maintenance', title: 'Sunday, 2 to 3' }).type);
 */
export const publishBroadcast = defineCommand(
  'broadcast.publish',
  compileSchema(Type.Object(broadcastFields, closed)),
);
export const advanceBroadcast = defineCommand(
  'broadcast.advance',
  compileSchema(
    Type.Object(
      {
        /** The value of `reached` before this page. */
        before: Type.Integer({ minimum: 0 }),
        reached,
        /** Null after the last page. */
        cursor: Type.Union([cursor, Type.Null()]),
      },
      closed,
    ),
  ),
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

type Published = ProjectedEvent<ReturnType<typeof broadcastPublished.parse>>;
type Advanced = ProjectedEvent<ReturnType<typeof broadcastAdvanced.parse>>;
type Completed = ProjectedEvent<ReturnType<typeof broadcastCompleted.parse>>;

/**
 * The read model of broadcasts, ordered by time: `app:{core}:notify:broadcast:v1:<id>`.
 *
 * @example
 * import { broadcastProjection } from 'millrace/customers';
 *
 * console.log(broadcastProjection.readModel.name); // notify.broadcast.v1
 */
export const broadcastProjection = projection({
  name: 'sub:notify:broadcast-projection:v1',
  readModel: readModel<BroadcastDocument>({
    bc: 'notify',
    aggregate: 'broadcast',
    version: 1,
    ranges: { at: (document) => Date.parse(document.at) },
  }),
  on: {
    'broadcast.published.v1': (_before, { payload, aggregate }: Published) => ({
      broadcastId: aggregate.id,
      ...payload,
      body: payload.body ?? null,
      status: 'spreading' as const,
      reached: 0,
    }),
    'broadcast.advanced.v1': (before, { payload }: Advanced) =>
      before === null ? null : { ...before, reached: payload.reached },
    'broadcast.completed.v1': (before, { payload }: Completed) =>
      before === null
        ? null
        : { ...before, reached: payload.reached, status: 'completed' as const },
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
    // A full inbox refuses the broadcast; the other customers still get it.
    onRefused: 'ignore',
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
    const { bc, aggregate } = customerProjection.readModel;
    const customers = documents({ bc, aggregate }) as DocumentQueries<CustomerDocument>;
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
