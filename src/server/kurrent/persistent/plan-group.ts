// What a client wants a group to be; where it begins is fixed here, once.

import { compileFilter } from '../../../store/event-filter.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { toSequence } from '../../../store/position.ts';
import { toCount } from '../protocol/wire-number.ts';
import { badRequest } from '../refusal.ts';
import { indexFilter, refuseUnkept } from '../streams/index-stream.ts';
import { toEventFilter, type From } from '../streams/read-plan.ts';
import { streamNameOf } from '../streams/stream-name.ts';
import type { GroupKey } from './group-records.ts';
import { parseSettings, type GroupSettings } from './group-settings.ts';
import type { WireWriteRequest } from './wire-types.ts';

export async function planGroup(
  store: Pick<EventStore, 'head' | 'streamInfo'>,
  options: WireWriteRequest['options'],
): Promise<{ readonly key: GroupKey; readonly settings: GroupSettings }> {
  if (options?.settings === undefined) throw badRequest('the request has no settings');
  const { all, groupName: group, settings: wire } = options;
  if (group === '') throw badRequest('the group has no name');
  if (all !== undefined) {
    const from = fromOf(all.position?.commitPosition, all.end !== undefined);
    const filter = all.filter === undefined ? undefined : toEventFilter(all.filter);
    // A pattern that cannot be used is refused now, not when the group first reads.
    compileFilter(filter);
    const after = from === 'end' ? toSequence(await store.head()) : from === 'start' ? 0 : from - 1;
    return {
      key: { source: '$all', group },
      settings: {
        ...parseSettings(wire, { from, after: Math.max(0, after) }),
        ...(filter === undefined ? {} : { filter }),
      },
    };
  }
  const source = streamNameOf(options.stream?.streamIdentifier ?? options.streamIdentifier);
  refuseUnkept(source);
  // Clients carry the start in the deprecated field, and in nothing else.
  const from = fromOf(options.stream?.revision ?? wire.revision, options.stream?.end !== undefined);
  const after = from === 'end' ? await lastOf(store, source) : from === 'start' ? -1 : from - 1;
  return { key: { source, group }, settings: parseSettings(wire, { from, after }) };
}

function fromOf(at: Parameters<typeof toCount>[0] | undefined, end: boolean): From {
  if (end) return 'end';
  const count = at === undefined ? 0 : toCount(at);
  if (count === Number.MAX_SAFE_INTEGER) return 'end';
  return count === 0 ? 'start' : count;
}

async function lastOf(
  store: Pick<EventStore, 'head' | 'streamInfo'>,
  source: string,
): Promise<number> {
  if (indexFilter(source) !== undefined) return toSequence(await store.head());
  return (await store.streamInfo(source))?.revision ?? -1;
}
