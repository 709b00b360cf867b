// Streams/Read: bounded reads; `subscribe.ts` has the live ones.

import type { RecordedEvent } from '../../../store/recorded-event.ts';
import type { CallInfo, Send } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import { toWireEvent, wireBytes } from '../events/to-wire.ts';
import type { WireReadRequest, WireReadResponse } from '../protocol/wire-types.ts';
import { aboutMetadata } from './metadata-events.ts';
import { createPageSize } from './page-size.ts';
import { readPages } from './read-pages.ts';
import { planRead, type ReadPlan } from './read-plan.ts';
import { toReadEvents } from './read-events.ts';
import { wireStream } from './stream-name.ts';
import { subscribe } from './subscribe.ts';

export async function read(
  context: KurrentContext,
  request: WireReadRequest,
  send: Send<WireReadResponse>,
  info: CallInfo,
): Promise<void> {
  const plan = boundToTenant(planRead(request), info);
  context.access.checkRead(info.identity, plan.source.kind === 'all' ? '$all' : plan.source.stream);
  if (plan.live) return subscribe(context, plan, send, info);
  const shown =
    plan.source.kind === 'stream' ? await aboutMetadata(context, plan.source.stream) : undefined;
  const first = plan.source.kind === 'stream' && plan.direction === 'forwards' ? plan.from : 0;
  let last: RecordedEvent | undefined;
  let count = 0;
  const size = createPageSize(context.limits.pageEventsMax);
  const keep = plan.source.kind === 'stream' ? undefined : context.access.visible(info.identity);
  const { signal } = info;
  for await (const page of readPages(context.store, plan, size, { signal, keep })) {
    const [head] = page;
    if (last === undefined && head !== undefined && isTruncated(head, plan, first)) {
      await send({ firstStreamPosition: head.revision });
    }
    last = page.at(-1);
    count += page.length;
    const events = toReadEvents(context, plan, shown === undefined ? page : page.map(shown), info);
    let bytes = 0;
    for (const each of events instanceof Promise ? await events : events) {
      const event = toWireEvent(each, plan);
      bytes += wireBytes(event);
      const full = send({ event });
      if (full !== undefined) await full;
    }
    size.took(page.length, bytes);
  }
  const { source, direction, limit } = plan;
  if (source.kind === 'all') return;
  if (last === undefined) {
    if (!(await isThere(context, source, keep))) {
      await send({ streamNotFound: { streamIdentifier: wireStream(source.stream) } });
    }
  } else if (source.kind === 'stream' && direction === 'forwards' && count < limit) {
    await send({ lastStreamPosition: last.revision });
  }
}

/** Whoever is bound to a tenant sees all and indexes as if there were no other. */
function boundToTenant(plan: ReadPlan, { identity }: CallInfo): ReadPlan {
  const { source } = plan;
  if (identity.tenant === undefined || source.kind === 'stream') return plan;
  const filter = { ...source.filter, tenant: identity.tenant };
  return { ...plan, source: { ...source, filter } };
}

function isTruncated(
  event: RecordedEvent,
  { source, direction }: ReadPlan,
  from: ReadPlan['from'],
): boolean {
  if (source.kind !== 'stream' || direction === 'backwards' || from === 'end') return false;
  return event.revision > (from === 'start' ? 0 : from);
}

async function isThere(
  { store }: KurrentContext,
  source: Exclude<ReadPlan['source'], { readonly kind: 'all' }>,
  keep: ((event: RecordedEvent) => boolean) | undefined,
): Promise<boolean> {
  if (source.kind === 'index') {
    const [first] = await store.readAll({ filter: source.filter, limit: 1 }).toArray();
    return first !== undefined && keep?.(first) !== false;
  }
  const info = await store.streamInfo(source.stream);
  return info !== undefined && info.revision >= 0 && info.deleted === 'no';
}
