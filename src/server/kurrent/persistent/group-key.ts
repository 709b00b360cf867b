// Which group a request is about.

import { badRequest } from '../refusal.ts';
import { streamNameOf } from '../streams/stream-name.ts';
import type { GroupKey } from './group-records.ts';
import type { WireGroup } from './wire-types.ts';

export function keyOf({ all, streamIdentifier, groupName }: WireGroup): GroupKey {
  if (groupName === '') throw badRequest('the group has no name');
  return { source: all === undefined ? streamNameOf(streamIdentifier) : '$all', group: groupName };
}
