// The fast way through all events: page by page, documents kept in memory between them, the next page
// folded while the one before is written.

import type { ProjectedEvent, Projection } from './projection.ts';
import {
  documentKey,
  foldDocument,
  groupByDocument,
  toDocumentWrite,
  toState,
  type DocumentEvents,
  type DocumentState,
} from './fold-documents.ts';
import { writeDocuments } from './project-events.ts';
import type { ReadModelStore } from './read-model-store.ts';

export interface PageProjector {
  /**
   * Folds a page and begins to write it, once the page before is written; `onWritten` is called when
   * this one is. Rejects with what either of them failed with.
   */
  project(events: readonly ProjectedEvent[], onWritten: () => Promise<void>): Promise<void>;
  /** Everything is written. */
  finish(): Promise<void>;
}

export function createPageProjector<Document extends object>(
  store: ReadModelStore,
  projection: Projection<Document>,
  { documentsMax }: { readonly documentsMax: number },
): PageProjector {
  /** Least recently used first. What is not there is in the store, unless it is being written. */
  const kept = new Map<string, DocumentState<Document> | undefined>();
  let writing: Promise<void> = Promise.resolve();

  async function load(missing: readonly DocumentEvents[]): Promise<void> {
    if (missing.length === 0) return;
    await writing;
    const stored = await store.load(projection.readModel, missing);
    for (const [index, group] of missing.entries()) {
      const found = stored[index];
      kept.set(documentKey(group), found === undefined ? undefined : toState(projection, found));
    }
  }

  function trim(): void {
    for (const key of kept.keys()) {
      if (kept.size <= documentsMax) return;
      kept.delete(key);
    }
  }

  return {
    async project(events, onWritten) {
      const groups = [...groupByDocument(projection, events)];
      await load(groups.filter(([key]) => !kept.has(key)).map(([, group]) => group));
      const writes = groups.flatMap(([key, group]) => {
        const state = kept.get(key);
        const folded = foldDocument(projection, state, group);
        kept.delete(key);
        kept.set(key, folded ?? state);
        return folded === undefined ? [] : [toDocumentWrite(projection, group, folded)];
      });
      trim();
      await writing;
      const write = async (): Promise<void> => {
        await writeDocuments(store, projection, writes);
        await onWritten();
      };
      writing = write();
      // Whoever comes next hears of a failure; until then nobody listens.
      writing.catch(() => undefined);
    },
    finish: () => writing,
  };
}
