// A broadcast: what it says, once, and how far it has come.

import { defineAggregate } from '../aggregates/define-aggregate.ts';
import {
  advanceBroadcast,
  broadcastAdvanced,
  broadcastCompleted,
  broadcastPublished,
  publishBroadcast,
  type BroadcastCategory,
} from './broadcast-events.ts';
import { timeOf } from './customer-due.ts';

export interface BroadcastState {
  readonly status: 'none' | 'spreading' | 'completed';
  readonly category?: BroadcastCategory;
  readonly title: string;
  readonly body?: string;
  /** Customers that were told so far. */
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
    'broadcast.published.v1': (_state, { at: _time, ...words }): BroadcastState => ({
      ...words,
      status: 'spreading',
      reached: 0,
    }),
    'broadcast.advanced.v1': (state, { reached }): BroadcastState => ({ ...state, reached }),
    'broadcast.completed.v1': (state, { reached }): BroadcastState => ({
      ...state,
      status: 'completed',
      reached,
    }),
  },
  decide: {
    'broadcast.publish': (words, { status }, { nowMs }) =>
      status === 'none' ? broadcastPublished({ at: timeOf(nowMs), ...words }) : [],
    'broadcast.advance': ({ before, reached, cursor }, state) => {
      // A page that somebody else has told already.
      if (state.status !== 'spreading' || before !== state.reached) return [];
      return cursor === null
        ? broadcastCompleted({ reached })
        : broadcastAdvanced({ reached, cursor });
    },
  },
});
