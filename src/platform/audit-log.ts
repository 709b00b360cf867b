// Who did what to this system: events of a stream of its own, written before the deed and after it, so
// that nothing is done that is not on record.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { createIds, idFromKey } from '../foundation/ids.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import type { EventStore } from '../store/event-store.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';

export interface AuditActor {
  readonly kind: string;
  readonly name: string;
  /** Absent: of all tenants. */
  readonly tenant?: string;
  readonly address?: string;
}

export interface AuditRequest {
  /** What is done, as in `dead-letter.replay`. */
  readonly action: string;
  /** To what: an id, a name, or what a filter says. */
  readonly target: string;
  readonly actor: AuditActor;
  readonly requestId?: string;
}

export interface AuditEntry extends AuditRequest {
  readonly id: string;
  readonly at: string;
  /** `unknown`: it is under way, or its process died before it could say. */
  readonly outcome: 'done' | 'failed' | 'unknown';
  readonly endedAt?: string;
  /** The code of the error that it failed with. */
  readonly error?: string;
}

export interface AuditFilter {
  /** The name of who did it. */
  readonly actor?: string;
  readonly action?: string;
  /** Of those who are bound to this tenant. */
  readonly tenant?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** For the next page; undefined: this is the last one. */
  readonly cursor: string | undefined;
}

export interface AuditLog {
  /** Writes that it is asked for, does it, and writes what came of it. Not on record: not done. */
  run<T>(request: AuditRequest, work: () => Promise<T>): Promise<T>;
  /** Newest first. A page may be short, or empty, and have a cursor: that far it looked. */
  list(
    filter: AuditFilter,
    page?: { readonly limit?: number; readonly cursor?: string },
  ): Promise<AuditPage>;
}

export interface AuditLogOptions {
  readonly clock?: Clock;
  readonly observer?: Observer;
  /** Of a stream that is new; later its metadata says it. Default: 365 days. */
  readonly keptSeconds?: number;
}

const auditStream = '$millrace-audit';
const askedType = '$audit-asked';
const endedType = '$audit-ended';

const targetCharsMax = 1_000;
const keptSecondsDefault = 365 * 86_400;
const limitDefault = 100;
/** Events that one page looks at: a rare filter must not read years of them. */
const lookedAtMax = 5_000;

interface Ended {
  readonly outcome: 'done' | 'failed';
  readonly error?: string;
}

/**
 * The record of what was done to a system, in its own event store.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { createAuditLog } from 'millrace/platform';
 *
 * await using store = memoryEventStore();
 * const audit = createAuditLog(store);
 * const actor = { kind: 'token', name: 'ada' };
 * await audit.run({ action: 'outbox.purge', target: 'all', actor }, async () => 0);
 * console.log((await audit.list({ actor: 'ada' })).entries[0]?.outcome); // done
 */
export function createAuditLog(store: EventStore, options: AuditLogOptions = {}): AuditLog {
  const { clock = systemClock, observer = silentObserver } = options;
  const { keptSeconds = keptSecondsDefault } = options;
  const ids = createIds({ clock });
  let isKept = false;

  const keep = async (): Promise<void> => {
    if (isKept) return;
    if ((await store.streamInfo(auditStream)) === undefined) {
      await store.setStreamMetadata(auditStream, { maxAgeSeconds: keptSeconds }, { system: true });
    }
    isKept = true;
  };

  const write = async (
    type: string,
    { eventId, correlationId }: { readonly eventId: string; readonly correlationId: string },
    payload: object,
  ): Promise<void> => {
    const event = {
      type,
      eventId,
      occurredAt: new Date(clock.now()).toISOString(),
      correlationId,
      tenant: '',
      aggregate: { bc: '', type: '', id: auditStream },
      payload,
    };
    await store.append(auditStream, [event], { system: true });
  };

  /** What came of it is known already: failing to write it down must not turn it round. */
  const end = async (id: string, ended: Ended): Promise<void> => {
    try {
      await write(endedType, { eventId: endedId(id), correlationId: id }, ended);
    } catch (error) {
      observer.log?.error({ err: error, auditId: id, ...ended }, 'audit: outcome not written');
    }
  };

  return {
    async run(request, work) {
      await keep();
      const id = ids.next();
      await write(askedType, { eventId: id, correlationId: id }, request);
      try {
        const result = await work();
        await end(id, { outcome: 'done' });
        return result;
      } catch (error) {
        const code = error instanceof MillraceError ? error.code : 'INTERNAL';
        await end(id, { outcome: 'failed', error: code });
        throw error;
      }
    },
    async list(filter, { limit = limitDefault, cursor } = {}) {
      const from = cursor === undefined ? undefined : revisionOf(cursor);
      const found: RecordedEvent[] = [];
      const endings = new Map<string, RecordedEvent>();
      let lookedAt = 0;
      let next: number | undefined;
      const events = store.readStream(auditStream, {
        direction: 'backwards',
        ...(from === undefined ? {} : { from }),
      });
      for await (const event of events) {
        if (found.length === limit || lookedAt === lookedAtMax) {
          next = event.revision;
          break;
        }
        lookedAt += 1;
        if (event.type === endedType) endings.set(event.correlationId, event);
        else if (isOlder(event, filter)) break;
        else if (isAsked(event) && matches(event, filter)) found.push(event);
      }
      const entries = await Promise.all(
        found.map(async (asked) => {
          const { eventId } = asked;
          // Its ending stands behind it, so it may be on the page before.
          const ending =
            endings.get(eventId) ?? (await store.findEvent(auditStream, endedId(eventId)));
          return entryOf(asked, ending);
        }),
      );
      return { entries, cursor: next === undefined ? undefined : String(next) };
    },
  };
}

/** For the record: what a filter says. */
export function filterText(filter: object): string {
  const parts = Object.entries(filter).filter(([, value]) => value !== undefined);
  return parts.length === 0
    ? 'all'
    : JSON.stringify(Object.fromEntries(parts)).slice(0, targetCharsMax);
}

/** Whoever may write to the system's streams may have written anything. */
function isAsked({ type, payload }: RecordedEvent): boolean {
  const { action, actor } = (payload ?? {}) as Partial<AuditRequest>;
  return type === askedType && typeof action === 'string' && typeof actor?.name === 'string';
}

function endedId(id: string): string {
  return idFromKey(`${id} ended`);
}

function isOlder({ occurredAt }: RecordedEvent, { sinceMs }: AuditFilter): boolean {
  return sinceMs !== undefined && Date.parse(occurredAt) < sinceMs;
}

function matches(event: RecordedEvent, filter: AuditFilter): boolean {
  const { actor, action } = event.payload as AuditRequest;
  const { untilMs } = filter;
  return (
    (filter.actor === undefined || actor.name === filter.actor) &&
    (filter.action === undefined || action === filter.action) &&
    (filter.tenant === undefined || actor.tenant === filter.tenant) &&
    (untilMs === undefined || Date.parse(event.occurredAt) < untilMs)
  );
}

function entryOf(asked: RecordedEvent, ending: RecordedEvent | undefined): AuditEntry {
  const request = asked.payload as AuditRequest;
  const common = { id: asked.eventId, at: asked.occurredAt, ...request };
  if (ending === undefined) return { ...common, outcome: 'unknown' };
  return { ...common, ...(ending.payload as Ended), endedAt: ending.occurredAt };
}

function revisionOf(cursor: string): number {
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw new MillraceError('CURSOR_INVALID', 'this is no cursor of the audit', {
    details: { field: 'cursor' },
  });
}
