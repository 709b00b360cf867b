// `app:{core}:notify:broadcast:v1:<id>`: what was told to everybody, newest first.

import { projection, type ProjectedEvent } from '../projections/projection.ts';
import { readModel } from '../projections/read-model.ts';
import type {
  BroadcastCategory,
  broadcastAdvanced,
  broadcastCompleted,
  broadcastPublished,
} from './broadcast-events.ts';

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
 * Broadcasts, as documents.
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
    ranges: { at: ({ at }) => Date.parse(at) },
  }),
  on: {
    'broadcast.published.v1': (_before, { payload, aggregate }: Published) => ({
      broadcastId: aggregate.id,
      ...payload,
      body: payload.body ?? null,
      status: 'spreading' as const,
      reached: 0,
    }),
    'broadcast.advanced.v1': (before, { payload: { reached } }: Advanced) =>
      before === null ? null : { ...before, reached },
    'broadcast.completed.v1': (before, { payload: { reached } }: Completed) =>
      before === null ? null : { ...before, reached, status: 'completed' as const },
  },
});
