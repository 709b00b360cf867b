// Documents as the live feed has seen them: what the read model has, and the events behind that which passed
// by here already. So nobody is let in by a read model that is a moment late.

import type { DocumentQueries, Projection } from 'millrace/projections';
import type { RecordedEvent } from 'millrace/store';

export interface LiveDocuments<Document extends object> {
  get(tenant: string, id: string): Promise<Document | undefined>;
  /** Every event of the projection, in their order. */
  note(event: RecordedEvent): void;
}

interface Kept<Document> {
  readonly document: Document | null;
  readonly revision: number;
}

const liveDocumentLimits = {
  keptMax: 10_000,
  /** Of all documents, also those that are kept: one may be read again. Read models are never so far behind. */
  recentMax: 10_000,
} as const;

export function createLiveDocuments<Document extends object>(
  projection: Projection<Document>,
  documents: Pick<DocumentQueries<Document>, 'get'>,
  {
    keptMax,
    recentMax,
  }: { readonly keptMax: number; readonly recentMax: number } = liveDocumentLimits,
): LiveDocuments<Document> {
  const kept = new Map<string, Kept<Document>>();
  /** Oldest first. */
  let recent: RecordedEvent[] = [];
  const types = new Set(projection.filter.types);
  const keyOf = (tenant: string, id: string): string => `${tenant} ${id}`;
  const apply = (before: Kept<Document>, event: RecordedEvent): Kept<Document> =>
    event.revision <= before.revision
      ? before
      : { document: projection.apply(before.document, event), revision: event.revision };

  return {
    note(event) {
      if (!types.has(event.type)) return;
      const key = keyOf(event.tenant, projection.idOf(event));
      const before = kept.get(key);
      if (before !== undefined) kept.set(key, apply(before, event));
      recent.push(event);
      // Cut by half: each time would copy the list for every event.
      if (recent.length > recentMax) recent = recent.slice(recentMax / 2);
    },
    async get(tenant, id) {
      const key = keyOf(tenant, id);
      const known = kept.get(key);
      if (known !== undefined) return known.document ?? undefined;
      const found = await documents.get(tenant, id);
      // Somebody else asked for it meanwhile: that one goes on with the events.
      const other = kept.get(key);
      if (other !== undefined) return other.document ?? undefined;
      const base: Kept<Document> = found ?? { document: null, revision: -1 };
      const current = recent
        .filter((event) => keyOf(event.tenant, projection.idOf(event)) === key)
        .reduce(apply, base);
      if (current.document === null) return undefined;
      kept.set(key, current);
      const [oldest] = kept.keys();
      if (kept.size > keptMax && oldest !== undefined) kept.delete(oldest);
      return current.document;
    },
  };
}
