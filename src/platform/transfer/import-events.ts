// Imports exported events into a store, in order, each once, also if the import is repeated.

import { hasCode, MillraceError } from '../../foundation/error.ts';
import { unlessAborted } from '../../foundation/async/when-aborted.ts';
import { isForgotten } from '../../store/erasure.ts';
import type { EventStore } from '../../store/event-store.ts';
import { startPosition } from '../../store/position.ts';
import type { ExportedEvent } from './export-format.ts';
import { importChunks, importLimits, subjectOf } from './import-chunks.ts';
import { createRevisionMappings, type RevisionMappings } from './revision-mappings.ts';
import { inParallel, planImport, type ImportPlan } from './import-plan.ts';

export interface ImportOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
}

export interface ImportProgress {
  /** Number of events that this run wrote. */
  readonly appended: number;
  /** Number of events that the target already had. */
  readonly duplicates: number;
}

export interface ImportResult extends ImportProgress {
  /** False: the last line is not a checkpoint, so the export was interrupted. */
  readonly complete: boolean;
  /** Persons that were erased in the source and not in the target (`store.forget`). */
  readonly forgottenSubjects: readonly string[];
}

/** Retries if another process writes to the same streams. */
const triesMax = 3;

/**
 * Appends exported events to a store, with their streams, order, envelopes, metadata and tombstones. Existing events
 * are skipped, so an interrupted import is simply repeated; a target stream with other events is rejected.
 *
 * Open the store with `names: 'open'`: the names were validated when the events were first appended, and a strict
 * store rejects system streams.
 *
 * @example
 * import { createReadStream } from 'node:fs';
 * import { openPostgres } from 'millrace/engines/postgres';
 * import { importEvents } from 'millrace/platform';
 *
 * await using db = await openPostgres('postgres://localhost/shop', { names: 'open' });
 * const { appended } = await importEvents(db.store, createReadStream('events.ndjson'));
 * console.log(`${appended} events are new`);
 */
export async function importEvents(
  store: EventStore,
  source: AsyncIterable<string | Uint8Array>,
  options: ImportOptions = {},
): Promise<ImportResult> {
  const { signal, onProgress } = options;
  const mappings = createRevisionMappings(store, {
    empty: (await store.head()) === startPosition,
    mappingsMax: importLimits.streamsRemembered,
  });
  const forgotten = new Set<string>();
  let progress: ImportProgress = { appended: 0, duplicates: 0 };
  let complete = false;

  const chunks = importChunks(source);
  try {
    let next = handled(chunks.next());
    for (;;) {
      const { done, value: chunk } = await unlessAborted(next, signal);
      if (done === true) break;
      // The next chunk is read while this one is written.
      next = handled(chunks.next());
      ({ complete } = chunk);
      noteForgotten(chunk.events, forgotten);
      const appended = await writeChunk({ store, mappings, signal }, chunk.events);
      const duplicates = chunk.events.length - appended;
      progress = {
        appended: progress.appended + appended,
        duplicates: progress.duplicates + duplicates,
      };
      onProgress?.(progress);
    }
  } finally {
    // Do not await the return: it could wait forever for a read that never completes.
    void handled(chunks.return());
  }
  return { ...progress, complete, forgottenSubjects: [...forgotten] };
}

interface Target {
  readonly store: EventStore;
  readonly mappings: RevisionMappings;
  readonly signal: AbortSignal | undefined;
}

/** Returns the number of new events. */
async function writeChunk(target: Target, events: readonly ExportedEvent[]): Promise<number> {
  const { store, mappings } = target;
  for (let attempt = 1; ; attempt += 1) {
    const plan = await planImport(store, mappings, events);
    try {
      await writePlan(target, plan);
      for (const [stream, mapping] of plan.mappings) mappings.set(stream, mapping);
      return plan.count;
    } catch (error) {
      const moved = hasCode(error, 'VERSION_CONFLICT') || hasCode(error, 'STREAM_DELETED');
      if (!moved || attempt === triesMax) throw withLines(error, events);
      await inParallel(plan.mappings.keys(), importLimits.parallel, (stream) =>
        mappings.refresh(stream),
      );
    }
  }
}

async function writePlan(
  { store, signal }: Target,
  { writes, tombstone }: ImportPlan,
): Promise<void> {
  if (tombstone !== undefined) {
    await store.tombstoneStream(tombstone.stream, { expected: tombstone.expected });
  }
  if (writes.length === 0) return;
  if (store.capabilities.multiStreamAppend) {
    // One append, to keep the order across streams.
    await store.appendMany(writes, { signal });
    return;
  }
  const lanes = Map.groupBy(writes, subjectOf).values();
  await inParallel(lanes, importLimits.parallel, async (lane) => {
    for (const { stream, events, expected } of lane) {
      await store.append(stream, events, { expected, signal });
    }
  });
}

function noteForgotten(events: readonly ExportedEvent[], into: Set<string>): void {
  for (const { payload } of events.map(({ envelope }) => envelope)) {
    if (into.size >= importLimits.subjectsReported) return;
    if (!isForgotten(payload)) continue;
    const mark: { readonly subject?: unknown } | null = payload.$forgotten;
    if (typeof mark?.subject === 'string') into.add(mark.subject);
  }
}

/** Adds the line of the file to an error of the store, which only names the stream. */
function withLines(error: unknown, events: readonly ExportedEvent[]): unknown {
  const [first, last] = [events[0]?.line, events.at(-1)?.line];
  if (!(error instanceof MillraceError) || error.code === 'ABORTED') return error;
  return new MillraceError(error.code, `${error.message} (lines ${first} to ${last})`, {
    cause: error,
    retryable: error.retryable,
    details: { ...error.details, firstLine: first, lastLine: last },
  });
}

/** Prevents an unhandled rejection; the error is reported where the promise is awaited. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
