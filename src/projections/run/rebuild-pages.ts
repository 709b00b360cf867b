// The fast way through all events: page by page, documents kept in memory between them, the next page
// folded while the one before is written.

import type { ProjectedEvent, Projection } from '../projection.ts';
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
import type { ReadModelStore } from '../read-model-store.ts';

export interface PageProjector {
  /**
   * Folds a page and begins to write it, once the page before is written; `onWritten` is called when
   * this one is. Rejects with what either of them failed with.
   */
  project(events: readonly ProjectedEvent[], onWritten: () => Promise<void>): Promise<void>;
  /** Everything is written. */
  finish(): Promise<void>;
}

interface Kept<Document> {
  /** Undefined: nothing was ever written. */
  readonly state: DocumentState<Document> | undefined;
  readonly chars: number;
}

export function createPageProjector<Document extends object>(
  store: ReadModelStore,
  projection: Projection<Document>,
  { documentsMax, charsMax }: { readonly documentsMax: number; readonly charsMax: number },
): PageProjector {
  /** Least recently used first. Whatever is being written is in it; what is not in it, in the store. */
  const kept = new Map<string, Kept<Document>>();
  let chars = 0;
  let writing: Promise<void> = Promise.resolve();

  async function load(missing: readonly DocumentEvents[]): Promise<void> {
    if (missing.length === 0) return;
    const stored = await store.load(projection.readModel, missing);
    for (const [index, group] of missing.entries()) {
      const found = stored[index];
      const state = found === undefined ? undefined : toState(projection, found);
      keep(documentKey(group), { state, chars: found?.document?.length ?? 0 });
    }
  }

  function keep(key: string, document: Kept<Document>): void {
    chars += document.chars - (kept.get(key)?.chars ?? 0);
    kept.delete(key);
    kept.set(key, document);
  }

  /** Never those of this page: the next one must not look for them in the store before they are there. */
  function trim(ofThisPage: number): void {
    for (const [key, document] of kept) {
      const isRoomy = kept.size <= documentsMax && chars <= charsMax;
      if (isRoomy || kept.size <= ofThisPage) return;
      kept.delete(key);
      chars -= document.chars;
    }
  }

  return {
    async project(events, onWritten) {
      const groups = [...groupByDocument(projection, events)];
      await load(groups.filter(([key]) => !kept.has(key)).map(([, group]) => group));
      const writes = groups.flatMap(([key, group]) => {
        const before = kept.get(key);
        const folded = foldDocument(projection, before?.state, group);
        if (folded === undefined) {
          keep(key, before ?? { state: undefined, chars: 0 });
          return [];
        }
        const write = toDocumentWrite(projection, group, folded);
        keep(key, { state: folded, chars: write.document?.length ?? 0 });
        return [write];
      });
      trim(groups.length);
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
