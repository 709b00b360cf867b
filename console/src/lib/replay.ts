// Replays and discards failures with the routes of their kind, in calls of at most 500 ids.

import { call, type ResponseOf } from './api.ts';

type Source = ResponseOf<'GET /admin/failures'>['items'][number]['source'];

const idsMax = 500;

/** Returns how many were accepted. */
export async function replayIds(source: Source, ids: readonly string[]): Promise<number> {
  let count = 0;
  if (source === 'job') {
    for (const id of ids) {
      const { changed } = await call('POST /admin/jobs/{id}/retry', { params: { id }, body: {} });
      if (changed) count += 1;
    }
    return count;
  }
  for (const some of chunks(ids)) {
    if (source === 'delivery') {
      count += (await call('POST /admin/outbox/replay', { body: { ids: some } })).replayed;
    } else {
      count += (await call('POST /admin/dlq/replay', { body: { ids: some } })).requested;
    }
  }
  return count;
}

export async function discardIds(ids: readonly string[], reason: string): Promise<number> {
  let count = 0;
  for (const some of chunks(ids)) {
    count += (await call('POST /admin/dlq/discard', { body: { ids: some, reason } })).discarded;
  }
  return count;
}

function chunks(ids: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(ids.length / idsMax) }, (_, at) =>
    ids.slice(at * idsMax, (at + 1) * idsMax),
  );
}
