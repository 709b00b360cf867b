// Plans a chunk of the file: existing events are checked, missing ones are written at their revisions.

import type { DomainEventEnvelope } from '../../contracts/envelope.ts';
import type { EventStore, StreamAppend } from '../../store/event-store.ts';
import { softDeleted, type ExpectedRevision } from '../../store/expected-revision.ts';
import { metadataType, streamOfMetadata } from '../../store/stream-metadata.ts';
import type { ExportedEvent } from './export-format.ts';
import { importLimits, isTombstone } from './import-chunks.ts';
import {
  assertPresent,
  diverged,
  targetRevision,
  type RevisionMapping,
  type RevisionMappings,
} from './revision-mappings.ts';

export interface ImportPlan {
  /** The appends of the chunk, in the order of the file. */
  readonly writes: readonly Required<Omit<StreamAppend, 'follows'>>[];
  readonly tombstone?: { readonly stream: string; readonly expected: ExpectedRevision } | undefined;
  /** Events to write. */
  readonly count: number;
  /** The mappings after the import of these events. */
  readonly mappings: ReadonlyMap<string, RevisionMapping>;
}

interface Write {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: DomainEventEnvelope[];
}

export async function planImport(
  store: EventStore,
  known: RevisionMappings,
  events: readonly ExportedEvent[],
): Promise<ImportPlan> {
  const mappings = new Map<string, RevisionMapping>();
  await inParallel(firstOfEach(events), importLimits.parallel, async (event) => {
    mappings.set(event.stream, await known.find(event));
  });
  const writes: Write[] = [];
  /** The last event of each stream that should exist: earlier ones are its history. */
  const present = new Map<string, { event: ExportedEvent; target: number; tombstoned: boolean }>();
  let tombstone: ImportPlan['tombstone'];
  let count = 0;

  for (const event of events) {
    const { stream, revision } = event;
    const mapping = mappings.get(stream) ?? (await known.find(event));
    const target = targetRevision(mapping, revision);
    const { tombstoned } = mapping;
    if (revision > mapping.source) mappings.set(stream, { ...mapping, source: revision, target });
    if (isTombstone(event) && tombstoned && target === mapping.head) continue;
    if (target <= mapping.head && !isTombstone(event)) {
      present.set(stream, { event, target, tombstoned });
      continue;
    }
    if (tombstoned) throw diverged(event, 'has a tombstone');
    if (target <= mapping.head) throw diverged(event, `continues at revision ${target}`);
    count += 1;
    const expected = target === 0 ? 'none' : target - 1;
    if (isTombstone(event)) {
      tombstone = { stream, expected };
      continue;
    }
    const envelope = await inTargetRevisions(event, async (name) => {
      return mappings.get(name) ?? known.findByName(name);
    });
    const last = writes.at(-1);
    if (last?.stream === stream) last.events.push(envelope);
    else writes.push({ stream, expected, events: [envelope] });
  }
  await inParallel(present.values(), importLimits.parallel, ({ event, ...mapping }) =>
    assertPresent(store, event, mapping),
  );
  for (const [stream, mapping] of mappings) {
    const head = Math.max(mapping.head, mapping.target);
    const tombstoned = mapping.tombstoned || tombstone?.stream === stream;
    mappings.set(stream, { ...mapping, head, tombstoned });
  }
  return { writes, count, mappings, tombstone };
}

function firstOfEach(events: readonly ExportedEvent[]): Iterable<ExportedEvent> {
  const first = new Map<string, ExportedEvent>();
  for (const event of events) if (!first.has(event.stream)) first.set(event.stream, event);
  return first.values();
}

/** A truncation contains a source revision, which is converted for the target. */
async function inTargetRevisions(
  { stream, envelope }: ExportedEvent,
  mappingOf: (stream: string) => Promise<RevisionMapping | undefined>,
): Promise<DomainEventEnvelope> {
  const of = streamOfMetadata(stream);
  if (of === undefined || envelope.type !== metadataType) return envelope;
  const { $tb: before, ...rest } = (envelope.payload ?? {}) as { readonly $tb?: unknown };
  if (typeof before !== 'number' || before <= 0 || before >= softDeleted) return envelope;
  const mapping = await mappingOf(of);
  // All truncated events were removed: neither file nor target has an event of the stream.
  const inTarget =
    mapping === undefined ? 0 : Math.max(0, mapping.target + before - mapping.source);
  if (inTarget === before) return envelope;
  return { ...envelope, payload: inTarget === 0 ? rest : { ...rest, $tb: inTarget } };
}

/** Bounded concurrency: all items, `atOnce` at a time; rejects with the first failure. */
export async function inParallel<T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  // A failure exits the loop that shares this generator, and thereby the generator itself.
  const left = (function* () {
    yield* items;
  })();
  const worker = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
