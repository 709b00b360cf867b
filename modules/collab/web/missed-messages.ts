// What somebody missed: read from the store itself, behind the position that was seen last.

import { buildStreamName, type TenantLookup } from 'millrace/contracts';
import { MillraceError } from 'millrace/foundation';
import type { EventStore, Position, RecordedEvent } from 'millrace/store';
import { liveMessageOf, liveTaskTypes, type LiveMessage } from './live-message.ts';

/** Whoever missed more reads the pages again. */
const missedMax = 10_000;

export interface Missed {
  readonly tenant: string;
  readonly id: string;
  readonly since: Position;
}

export async function* missedInChat(
  store: EventStore,
  { tenant, id, since }: Missed,
  tenants: TenantLookup,
): AsyncGenerator<LiveMessage> {
  const stream = buildStreamName('collab', 'chat', 1, tenant, id, tenants);
  const last = (await store.streamInfo(stream))?.revision ?? -1;
  const from = await firstBehind(store, stream, { since, last });
  if (last - from >= missedMax) throw tooMuch();
  if (from > last) return;
  yield* messagesOf(store.readStream(stream, { from }));
}

/** Of all tasks of the workspace; which of them somebody sees is for others to decide. */
export async function* missedInWorkspace(
  store: EventStore,
  { tenant, id, since }: Missed,
): AsyncGenerator<LiveMessage> {
  const filter = { types: liveTaskTypes, tenant };
  let count = 0;
  for await (const event of store.readAll({ after: since, filter })) {
    count += 1;
    if (count > missedMax) throw tooMuch();
    const { workspaceId } = event.payload as { readonly workspaceId?: string };
    const live = workspaceId === id ? liveMessageOf(event) : undefined;
    if (live !== undefined) yield live;
  }
}

/** Revisions and positions grow together: looked for by halves, however long the stream is. */
async function firstBehind(
  store: EventStore,
  stream: string,
  { since, last }: { readonly since: Position; readonly last: number },
): Promise<number> {
  let [low, high] = [0, last + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [event] = await store.readStream(stream, { from: middle, limit: 1 }).toArray();
    if (event === undefined || event.position > since) high = middle;
    else low = middle + 1;
  }
  return low;
}

async function* messagesOf(events: AsyncIterable<RecordedEvent>): AsyncGenerator<LiveMessage> {
  for await (const event of events) {
    const live = liveMessageOf(event);
    if (live !== undefined) yield live;
  }
}

function tooMuch(): MillraceError {
  return new MillraceError('VERSION_CONFLICT', 'too much was missed: load the pages again', {
    details: { field: 'since', missedMax },
  });
}
