// Folds a batch of events and writes the documents; shared by all ways to run a projection.

import { MillraceError } from '../../foundation/error.ts';
import { projectionLimits, type ProjectedEvent, type Projection } from '../projection.ts';
import type { DocumentWrite, ReadModelStore } from '../read-model-store.ts';
import {
  foldDocument,
  groupByDocument,
  toDocumentWrite,
  toState,
} from '../rules/fold-documents.ts';

/** Resolves when the documents are written. Events of one stream must be in order. */
export async function projectEvents<Document extends object>(
  store: ReadModelStore,
  projection: Projection<Document>,
  events: readonly ProjectedEvent[],
): Promise<void> {
  const groups = [...groupByDocument(projection, events).values()];
  const stored = await store.load(projection.readModel, groups);
  const writes: DocumentWrite[] = [];
  for (const [index, group] of groups.entries()) {
    const folded = foldDocument(projection, toState(projection, stored[index]), group);
    if (folded !== undefined) writes.push(toDocumentWrite(projection, group, folded));
  }
  await writeDocuments(store, projection, writes);
}

export async function writeDocuments<Document extends object>(
  store: ReadModelStore,
  { name, readModel }: Projection<Document>,
  writes: readonly DocumentWrite[],
): Promise<void> {
  for (const chunk of chunksOf(writes, projectionLimits.writeChars)) {
    const outcomes = await store.write(readModel, chunk);
    const foreign = chunk[outcomes.indexOf('foreign')];
    if (foreign === undefined) continue;
    // Two streams wrote the document concurrently; on a later batch `foldDocument` reports this.
    const { tenant, id, stream } = foreign;
    throw new MillraceError(
      'DOCUMENT_FOREIGN',
      `${name}: document '${id}' belongs to another stream, not to '${stream}'`,
      { details: { name, tenant, id, stream } },
    );
  }
}

/** Splits long writes; each write is fenced separately. */
export function chunksOf(
  writes: readonly DocumentWrite[],
  charsMax: number,
): readonly (readonly DocumentWrite[])[] {
  const chunks: DocumentWrite[][] = [];
  let left = 0;
  for (const write of writes) {
    const length = write.document?.length ?? 0;
    if (chunks.length === 0 || length > left) {
      chunks.push([]);
      left = charsMax;
    }
    chunks.at(-1)?.push(write);
    left -= length;
  }
  return chunks;
}
