// The audit log: admin actions as events of a system stream. An action is recorded before it is executed, and its
// outcome after it.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { createIds, idFromKey } from '../foundation/ids.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import type { EventStore } from '../store/event-store.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { liveSystemStream, systemEvent } from '../store/system-stream.ts';

export interface AuditActor {
  readonly kind: string;
  readonly name: string;
  /** The tenant that the actor is bound to. Absent: all tenants. */
  readonly tenant?: string;
  readonly address?: string;
}

export interface AuditRequest {
  /** The action, such as `dead-letter.replay`. */
  readonly action: string;
  /** The target: an id, a name, or a filter. */
  readonly target: string;
  readonly actor: AuditActor;
  readonly requestId?: string | undefined;
}

/** The event of a recorded action. */
export interface AuditRecord extends Pick<
  RecordedEvent,
  'correlationId' | 'eventId' | 'position' | 'revision' | 'stream'
> {
  readonly recordedAtMs: number;
}

export interface AuditEntry extends AuditRequest {
  readonly id: string;
  readonly at: string;
  /** `unknown`: the action is running, or its process died. */
  readonly outcome: 'done' | 'failed' | 'unknown';
  readonly endedAt?: string;
  /** The error code of a failed action. */
  readonly error?: string;
}

export interface AuditFilter {
  /** The name of the actor. */
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  /** Actions of actors that are bound to this tenant. */
  readonly tenant?: string | undefined;
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

export interface AuditPage {
  readonly items: readonly AuditEntry[];
  /** The cursor of the next page; undefined: this is the last page. */
  readonly cursor: string | undefined;
}

export interface AuditLog {
  /**
   * Records the action, executes it, and records its outcome. An action that cannot be recorded is not executed. `work` gets
   * the record, which may be the source of what it writes.
   */
  run<T>(request: AuditRequest, work: (record: AuditRecord) => Promise<T>): Promise<T>;
  /** Lists entries, newest first. A page with a cursor may be short or empty: it shows how far the log was searched. */
  list(
    filter: AuditFilter,
    page?: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  ): Promise<AuditPage>;
}

export interface AuditLogOptions {
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  /** The maximum age of entries in a new stream; an existing stream keeps its metadata. Default: 365 days. */
  readonly keptSeconds?: number | undefined;
}

const auditStream = '$millrace-audit';
export const auditRequestedType = '$audit-asked';
export const auditEndedType = '$audit-ended';

const targetCharsMax = 1_000;
const keptSecondsDefault = 365 * 86_400;
const limitDefault = 100;
/** Events read for one page, so that a rare filter does not read the whole log. */
const eventsReadMax = 5_000;

interface Ended {
  readonly outcome: 'done' | 'failed';
  readonly error?: string;
}

/**
 * The audit log of a system, in its event store.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { createAuditLog } from 'millrace/platform';
 *
 * await using db = openMemory();
 * const audit = createAuditLog(db.store);
 * const actor = { kind: 'token', name: 'ada' };
 * await audit.run({ action: 'outbox.purge', target: 'all', actor }, async () => 0);
 * console.log((await audit.list({ actor: 'ada' })).items[0]?.outcome); // done
 */
export function createAuditLog(store: EventStore, options: AuditLogOptions = {}): AuditLog {
  const { clock = systemClock, observer = silentObserver } = options;
  const { keptSeconds = keptSecondsDefault } = options;
  const ids = createIds({ clock });
  const live = (): Promise<string> => liveSystemStream(store, auditStream, observer);
  let kept: string | undefined;

  const keep = async (): Promise<string> => {
    if (kept !== undefined) return kept;
    const stream = await live();
    if ((await store.streamInfo(stream)) === undefined) {
      await store.setStreamMetadata(stream, { maxAgeSeconds: keptSeconds }, { system: true });
    }
    kept = stream;
    return stream;
  };

  const write = async (
    type: string,
    eventIds: { readonly eventId: string; readonly correlationId: string },
    payload: object,
  ): Promise<AuditRecord> => {
    const stream = await keep();
    const event = systemEvent(stream, type, { ...eventIds, payload, clock });
    try {
      const { revision, position } = await store.append(stream, [event], { system: true });
      return { ...eventIds, stream, revision, position, recordedAtMs: clock.now() };
    } catch (error) {
      // The stream was removed: the next action is recorded under another name.
      if (hasCode(error, 'STREAM_DELETED')) kept = undefined;
      throw error;
    }
  };

  /** Never throws: the action is done, and a failure to record its outcome must not change the result. */
  const end = async (id: string, ended: Ended): Promise<void> => {
    try {
      await write(auditEndedType, { eventId: endedId(id), correlationId: id }, ended);
    } catch (error) {
      observer.log?.error({ err: error, auditId: id, ...ended }, 'audit: outcome not written');
    }
  };

  return {
    async run(request, work) {
      const id = ids.next();
      const record = await write(auditRequestedType, { eventId: id, correlationId: id }, request);
      try {
        const result = await work(record);
        await end(id, { outcome: 'done' });
        return result;
      } catch (error) {
        const code = error instanceof MillraceError ? error.code : 'INTERNAL';
        await end(id, { outcome: 'failed', error: code });
        throw error;
      }
    },
    async list(filter, { limit = limitDefault, cursor } = {}) {
      const stream = await live();
      const from = cursor === undefined ? undefined : revisionOf(cursor);
      const found: RecordedEvent[] = [];
      const endings = new Map<string, RecordedEvent>();
      let eventsRead = 0;
      let next: number | undefined;
      const events = store.readStream(stream, {
        direction: 'backwards',
        from,
      });
      for await (const event of events) {
        if (found.length === limit || eventsRead === eventsReadMax) {
          next = event.revision;
          break;
        }
        eventsRead += 1;
        if (event.type === auditEndedType) endings.set(event.correlationId, event);
        else if (isOlder(event, filter)) break;
        else if (isRequest(event) && matches(event, filter)) found.push(event);
      }
      const items = await Promise.all(
        found.map(async (requestEvent) => {
          const { eventId } = requestEvent;
          // The outcome follows the action in the stream, so it may be on the previous page.
          const ending = endings.get(eventId) ?? (await store.findEvent(stream, endedId(eventId)));
          return entryOf(requestEvent, ending);
        }),
      );
      return { items, cursor: next === undefined ? undefined : String(next) };
    },
  };
}

export function filterText(filter: object): string {
  const parts = Object.entries(filter).filter(([, value]) => value !== undefined);
  return parts.length === 0
    ? 'all'
    : JSON.stringify(Object.fromEntries(parts)).slice(0, targetCharsMax);
}

/** Validates an event, because other programs may write to the stream. */
function isRequest({ type, payload }: RecordedEvent): boolean {
  const { action, actor } = (payload ?? {}) as Partial<AuditRequest>;
  return (
    type === auditRequestedType && typeof action === 'string' && typeof actor?.name === 'string'
  );
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

function entryOf(requestEvent: RecordedEvent, ending: RecordedEvent | undefined): AuditEntry {
  const request = requestEvent.payload as AuditRequest;
  const common = { id: requestEvent.eventId, at: requestEvent.occurredAt, ...request };
  if (ending === undefined) return { ...common, outcome: 'unknown' };
  return { ...common, ...(ending.payload as Ended), endedAt: ending.occurredAt };
}

function revisionOf(cursor: string): number {
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw new MillraceError(
    'CURSOR_INVALID',
    'invalid cursor: pass the cursor of the previous page unchanged',
    {
      details: { field: 'cursor' },
    },
  );
}
