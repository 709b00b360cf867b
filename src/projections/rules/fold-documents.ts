// Folds a batch of events into one write per document: skips events that the document already includes and
// applies the rest.

import { MillraceError } from '../../foundation/error.ts';
import type { ProjectedEvent, Projection } from '../projection.ts';
import type { DocumentKey, DocumentWrite, StoredDocument } from '../read-model-store.ts';

export interface DocumentState<Document> {
  readonly stream: string;
  /** Revision of the last event in the document. */
  readonly revision: number;
  readonly document: Document | null;
}

/** The events of one document, in order. */
export interface DocumentEvents extends DocumentKey {
  readonly stream: string;
  readonly events: ProjectedEvent[];
}

/** By document, in the order of their first events. */
export function groupByDocument<Document extends object>(
  projection: Projection<Document>,
  events: readonly ProjectedEvent[],
): ReadonlyMap<string, DocumentEvents> {
  const groups = new Map<string, DocumentEvents>();
  for (const event of events) {
    const { tenant, stream } = event;
    const id = projection.idOf(event);
    const key = documentKey({ tenant, id });
    const group = groups.get(key);
    if (group === undefined) {
      groups.set(key, { tenant, id, stream, events: [event] });
      continue;
    }
    if (group.stream !== stream) throw foreign(projection.name, group, stream);
    group.events.push(event);
  }
  return groups;
}

export function documentKey({ tenant, id }: DocumentKey): string {
  // A tenant contains no space.
  return `${tenant} ${id}`;
}

export function toState<Document extends object>(
  { readModel }: Projection<Document>,
  stored: StoredDocument | undefined,
): DocumentState<Document> | undefined {
  if (stored === undefined) return undefined;
  const { stream, revision, document } = stored;
  return { stream, revision, document: document === null ? null : readModel.parse(document) };
}

/** Undefined if the events change nothing. */
export function foldDocument<Document extends object>(
  projection: Projection<Document>,
  state: DocumentState<Document> | undefined,
  group: DocumentEvents,
): DocumentState<Document> | undefined {
  if (state !== undefined && state.stream !== group.stream) {
    throw foreign(projection.name, { ...group, stream: state.stream }, group.stream);
  }
  const known = state?.revision ?? -1;
  let document = state?.document ?? null;
  let revision = known;
  // A document that never existed needs no write, even as a removal.
  let hasDocument = state !== undefined;
  for (const event of group.events) {
    if (event.revision <= revision) continue;
    document = projection.apply(document, event);
    revision = event.revision;
    hasDocument ||= document !== null;
  }
  return revision === known || !hasDocument
    ? undefined
    : { stream: group.stream, revision, document };
}

export function toDocumentWrite<Document extends object>(
  { readModel }: Projection<Document>,
  { tenant, id }: DocumentKey,
  { stream, revision, document }: DocumentState<Document>,
): DocumentWrite {
  return readModel.toWrite({ tenant, id, stream, revision }, document);
}

function foreign(
  name: string,
  { tenant, id, stream }: DocumentKey & { readonly stream: string },
  other: string,
): MillraceError {
  return new MillraceError(
    'DOCUMENT_FOREIGN',
    `${name}: document '${id}' belongs to stream '${stream}', not to '${other}'`,
    { details: { name, tenant, id, stream, other } },
  );
}
