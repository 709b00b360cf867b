// The fast rebuild: projects page by page, caches documents in memory, and folds a page while the previous
// one is written.

import type { ProjectedEvent, Projection } from '../projection.ts';
import type { ReadModelStore } from '../read-model-store.ts';
import {
  documentKey,
  foldDocument,
  groupByDocument,
  toDocumentWrite,
  toState,
  type DocumentEvents,
  type DocumentState,
} from '../rules/fold-documents.ts';
import { writeDocuments } from './project-events.ts';

export interface PageProjector {
  /**
   * Folds a page and starts to write it after the previous page is written. Calls `onWritten` after the
   * write. Rejects if this page or the write of the previous one fails.
   */
  project(events: readonly ProjectedEvent[], onWritten: () => Promise<void>): Promise<void>;
  /** Resolves when all pages are written. */
  finish(): Promise<void>;
}

interface CachedDocument<Document> {
  /** Undefined if the document was never written. */
  readonly state: DocumentState<Document> | undefined;
  readonly chars: number;
}

export function createPageProjector<Document extends object>(
  store: ReadModelStore,
  projection: Projection<Document>,
  { documentsMax, charsMax }: { readonly documentsMax: number; readonly charsMax: number },
): PageProjector {
  /** Least recently used first. Contains all documents whose write is pending. */
  const cache = new Map<string, CachedDocument<Document>>();
  let chars = 0;
  let writing: Promise<void> = Promise.resolve();

  async function load(missing: readonly DocumentEvents[]): Promise<void> {
    if (missing.length === 0) return;
    const stored = await store.load(projection.readModel, missing);
    for (const [index, group] of missing.entries()) {
      const found = stored[index];
      const state = toState(projection, found);
      remember(documentKey(group), { state, chars: found?.document?.length ?? 0 });
    }
  }

  function remember(key: string, document: CachedDocument<Document>): void {
    chars += document.chars - (cache.get(key)?.chars ?? 0);
    cache.delete(key);
    cache.set(key, document);
  }

  /** Never evicts the documents of this page, because the store may not have them yet. */
  function trim(ofThisPage: number): void {
    for (const [key, document] of cache) {
      const hasRoom = cache.size <= documentsMax && chars <= charsMax;
      if (hasRoom || cache.size <= ofThisPage) return;
      cache.delete(key);
      chars -= document.chars;
    }
  }

  return {
    async project(events, onWritten) {
      const groups = [...groupByDocument(projection, events)];
      await load(groups.filter(([key]) => !cache.has(key)).map(([, group]) => group));
      const writes = groups.flatMap(([key, group]) => {
        const before = cache.get(key);
        const folded = foldDocument(projection, before?.state, group);
        if (folded === undefined) {
          remember(key, before ?? { state: undefined, chars: 0 });
          return [];
        }
        const write = toDocumentWrite(projection, group, folded);
        remember(key, { state: folded, chars: write.document?.length ?? 0 });
        return [write];
      });
      trim(groups.length);
      await writing;
      const write = async (): Promise<void> => {
        await writeDocuments(store, projection, writes);
        await onWritten();
      };
      writing = write();
      // The next call reports a failure; avoid an unhandled rejection until then.
      writing.catch(() => undefined);
    },
    finish: () => writing,
  };
}
