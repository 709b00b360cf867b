// Stored events as a reader is to see them: in index streams as links, elsewhere with links resolved.

import type { RecordedEvent } from '../../../store/recorded-event.ts';
import type { CallInfo } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import type { ReadEvent } from '../events/to-wire.ts';
import type { ReadPlan } from './read-plan.ts';
import { asLinks, resolveLinks } from './resolve-links.ts';

export function toReadEvents(
  { store, access }: KurrentContext,
  { source, resolveLinks: resolve }: Pick<ReadPlan, 'source' | 'resolveLinks'>,
  events: readonly RecordedEvent[],
  { identity, signal }: Pick<CallInfo, 'identity' | 'signal'>,
): readonly ReadEvent[] | Promise<readonly ReadEvent[]> {
  if (source.kind === 'index') return asLinks(events, source.stream, resolve);
  if (!resolve) return events.map((event) => ({ event }));
  const mayRead = (stream: string): boolean => access.mayRead(identity, stream);
  return resolveLinks(store, events, { mayRead, signal });
}
