// Folds the documents of a stream again after personal data in it was erased.

import { compileFilter, matchesRow } from '../../store/event-filter.ts';
import type { EventStore } from '../../store/event-store.ts';
import { everyEventOf } from '../../store/follow-erasures.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import type { Projection } from '../projection.ts';
import type { DocumentWrite, ReadModelStore } from '../read-model-store.ts';
import {
  documentKey,
  foldDocument,
  groupByDocument,
  toDocumentWrite,
  type DocumentEvents,
  type DocumentState,
} from '../rules/fold-documents.ts';
import { writeDocuments } from './project-events.ts';

/** Each document keeps its revision, so later events are folded into it as before. */
export async function eraseDocuments<Document extends object>(
  { store, readModels }: { readonly store: EventStore; readonly readModels: ReadModelStore },
  projection: Projection<Document>,
  stream: string,
): Promise<void> {
  const filter = compileFilter(projection.filter);
  const revisions = new Map<string, number | undefined>();
  const groups = new Map<string, DocumentEvents>();
  const states = new Map<string, DocumentState<Document> | undefined>();

  async function fold(events: readonly RecordedEvent[]): Promise<void> {
    const page = groupByDocument(projection, events);
    const unknown = [...page].filter(([key]) => !revisions.has(key));
    const stored = await readModels.load(
      projection.readModel,
      unknown.map(([, group]) => group),
    );
    for (const [at, [key, group]] of unknown.entries()) {
      revisions.set(key, stored[at]?.revision);
      groups.set(key, group);
    }
    for (const [key, group] of page) {
      const upTo = revisions.get(key) ?? -1;
      const known = group.events.filter(({ revision }) => revision <= upTo);
      const state = states.get(key);
      states.set(key, foldDocument(projection, state, { ...group, events: known }) ?? state);
    }
  }

  for await (const page of everyEventOf(store, stream)) {
    await fold(page.filter((event) => matchesRow(filter, event, event.tenant)));
  }
  const writes: DocumentWrite[] = [];
  for (const group of groups.values()) {
    const key = documentKey(group);
    const revision = revisions.get(key);
    if (revision === undefined) continue;
    const document = states.get(key)?.document ?? null;
    const write = toDocumentWrite(projection, group, { stream, revision, document });
    writes.push({ ...write, isErasure: true });
  }
  await writeDocuments(readModels, projection, writes);
}
