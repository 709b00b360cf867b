// Projections in the append's transaction: events and documents become visible together.

import { isEnvelope, type DomainEventEnvelope } from '../contracts/envelope.ts';
import { encodePayload } from '../contracts/json-payload.ts';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { compileFilter } from '../store/event-filter.ts';
import type { EventStore, StreamAppend } from '../store/event-store.ts';
import { categoryOf } from '../store/stream-category.ts';
import type { RowFilter } from '../store/store-engine.ts';
import type { InlinePlan, InlineRoles } from './inline-appends.ts';
import { familyOf } from './read-model-versions.ts';
import type { ProjectedEvent, Projection } from './projection.ts';
import type { DocumentWrite, ReadModelRoles } from './read-model-store.ts';
import {
  foldDocument,
  groupByDocument,
  toDocumentWrite,
  toState,
  type DocumentEvents,
} from './rules/fold-documents.ts';
import { checkRoles, checkVersion } from './start-projection.ts';

/** Attempts to plan an append when other appends come first. */
const attemptsMax = 50;

/**
 * Returns the store with appends that also write the documents of these projections, atomically. A handler
 * that throws fails the append. Events that a document missed, for example from processes without inline
 * projections, are folded in with the next event.
 *
 * @example
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { inlineProjections, projection, readModel } from 'millrace/projections';
 *
 * const accounts = projection({
 *   name: 'sub:banking:accounts:v1',
 *   readModel: readModel<{ readonly opened: boolean }>({ bc: 'banking', aggregate: 'account', version: 1 }),
 *   on: { 'account.opened.v1': () => ({ opened: true }) },
 * });
 * await using db = await openSqlite('sqlite:.millrace/events.db');
 * const store = await inlineProjections(db, [accounts]);
 */
export async function inlineProjections(
  roles: InlineRoles & ReadModelRoles,
  projections: readonly Projection[],
  { clock = systemClock }: { readonly clock?: Clock | undefined } = {},
): Promise<EventStore> {
  const { store, inlineAppends, readModels, readModelVersions: versions } = checkRoles(roles);
  const wanted = projections.map((projection) => ({
    projection,
    filter: compileFilter(projection.filter),
  }));
  for (const { name, readModel } of projections) {
    const key = { family: familyOf(readModel), version: readModel.version };
    const target = await store.head();
    checkVersion(name, await versions.declare({ ...key, projection: name, target }, clock.now()));
  }

  async function appendMany(
    appends: readonly StreamAppend[],
    appendOptions: Parameters<EventStore['appendMany']>[1] = {},
  ) {
    if (appendOptions.transaction !== undefined) {
      throw new MillraceError(
        'NOT_SUPPORTED',
        'inline projections open their own transaction and accept none from the caller',
        { details: { capability: 'callerTransaction' } },
      );
    }
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const bases = await basesOf(appends, attempt > 0);
      const plan = await planOf(appends, bases);
      const results = await inlineAppends.commit(plan, (transaction) =>
        store.appendMany(appends, { ...appendOptions, transaction }),
      );
      if (results !== undefined) return results;
      if (attempt > 3) await clock.sleep(attempt, appendOptions.signal);
    }
    throw new MillraceError(
      'STORE_UNAVAILABLE',
      'other appends to these streams always came first',
      {
        details: { streams: appends.map(({ stream }) => stream), attempts: attemptsMax },
      },
    );
  }

  /** The revision of each stream, read before the documents, which can then only be newer. */
  async function basesOf(
    appends: readonly StreamAppend[],
    isRepeat: boolean,
  ): Promise<ReadonlyMap<string, number>> {
    const bases = new Map<string, number>();
    for (const { stream, expected } of appends) {
      if (bases.has(stream)) continue;
      const guess = typeof expected === 'number' ? expected : expected === 'none' ? -1 : undefined;
      // A recreated stream continues its revisions, so the guess may be wrong: read the revision on a retry.
      const base =
        isRepeat || guess === undefined ? (await store.streamInfo(stream))?.revision : guess;
      bases.set(stream, base ?? -1);
    }
    return bases;
  }

  async function planOf(
    appends: readonly StreamAppend[],
    bases: ReadonlyMap<string, number>,
  ): Promise<InlinePlan> {
    const next = new Map(bases);
    const events: ProjectedEvent[] = [];
    const revisions = appends.map(({ stream, events: given }) => {
      let revision = next.get(stream) ?? -1;
      for (const event of given) {
        revision += 1;
        // The append itself rejects invalid events.
        if (isEnvelope(event)) events.push(asStored(event, stream, revision));
      }
      next.set(stream, revision);
      return revision;
    });
    const documents = [];
    for (const { projection, filter } of wanted) {
      const matching = events.filter((event) => matches(filter, event));
      if (matching.length === 0) continue;
      const writes = await writesOf({ projection, filter, events: matching, bases });
      documents.push({ model: projection.readModel, writes });
    }
    return { revisions, documents };
  }

  async function writesOf({
    projection,
    filter,
    events,
    bases,
  }: {
    readonly projection: Projection;
    readonly filter: RowFilter;
    readonly events: readonly ProjectedEvent[];
    readonly bases: ReadonlyMap<string, number>;
  }): Promise<DocumentWrite[]> {
    const groups = [...groupByDocument(projection, events).values()];
    const stored = await readModels.load(projection.readModel, groups);
    const writes: DocumentWrite[] = [];
    for (const [index, group] of groups.entries()) {
      const state = toState(projection, stored[index]);
      const from = (state?.revision ?? -1) + 1;
      const upTo = bases.get(group.stream) ?? -1;
      const missed = from > upTo ? [] : await missedBy({ projection, filter, group, from, upTo });
      const whole = { ...group, events: [...missed, ...group.events] };
      const folded = foldDocument(projection, state, whole);
      if (folded !== undefined) writes.push(toDocumentWrite(projection, group, folded));
    }
    return writes;
  }

  async function missedBy({
    projection,
    filter,
    group,
    from,
    upTo,
  }: {
    readonly projection: Projection;
    readonly filter: RowFilter;
    readonly group: DocumentEvents;
    readonly from: number;
    readonly upTo: number;
  }): Promise<ProjectedEvent[]> {
    const missed: ProjectedEvent[] = [];
    for await (const event of store.readStream(group.stream, { from })) {
      if (event.revision > upTo) break;
      if (matches(filter, event) && projection.idOf(event) === group.id) missed.push(event);
    }
    return missed;
  }

  const append: EventStore['append'] = async (stream, events, given = {}) => {
    const { expected = 'any', follows, ...appendOptions } = given;
    const [result] = await appendMany([{ stream, events, expected, follows }], appendOptions);
    if (result === undefined)
      throw new MillraceError('STORE_CORRUPT', 'the engine returned fewer outcomes than appends');
    return result;
  };
  return { ...store, append, appendMany };
}

/** The event as the store returns it later. */
function asStored(event: DomainEventEnvelope, stream: string, revision: number): ProjectedEvent {
  const payload = JSON.parse(encodePayload(event.payload).json) as unknown;
  return { ...event, payload, stream, revision };
}

function matches(filter: RowFilter, { type, tenant, stream }: ProjectedEvent): boolean {
  return (
    filter.type?.(type) !== false &&
    (filter.tenant === undefined || filter.tenant === tenant) &&
    (filter.category === undefined || filter.category === categoryOf(stream)) &&
    filter.stream?.(stream) !== false
  );
}
