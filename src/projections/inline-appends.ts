// How an engine appends events and writes the documents that they change in one transaction: a port that
// the databases bring which hold both.

import type { AppendResult } from '../store/event-store.ts';
import type { WriteOutcome } from '../store/store-engine.ts';
import type { DocumentWrite, ModelKey } from './read-model-store.ts';

/** What was worked out before the append, for the case that nobody else appends meanwhile. */
export interface InlinePlan {
  /** Which revision the last event of each append must get for the documents to be right. */
  readonly revisions: readonly number[];
  readonly documents: readonly {
    readonly model: ModelKey;
    readonly writes: readonly DocumentWrite[];
  }[];
}

export interface InlineAppends {
  /**
   * `append` gets what it must hand to the store as its transaction. Undefined: a stream had moved on,
   * and nothing was done. A conflict is thrown as everywhere, and nothing was done either. Events that
   * had been appended before bring no documents.
   */
  commit(
    plan: InlinePlan,
    append: (transaction: unknown) => Promise<readonly AppendResult[]>,
  ): Promise<readonly AppendResult[] | undefined>;
}

/** An event store that can do it. */
export interface InlineHost {
  readonly inlineAppends: InlineAppends;
}

/** Stops an append whose stream has moved on, from inside of the engine. */
export class InlineMoved extends Error {
  override readonly name = 'InlineMoved';
}

/** For engines that take the plan along with the append, instead of a transaction. */
export class InlineTransaction {
  readonly plan: InlinePlan;

  constructor(plan: InlinePlan) {
    this.plan = plan;
  }
}

export function planInline(): InlineAppends {
  return {
    async commit(plan, append) {
      try {
        return await append(new InlineTransaction(plan));
      } catch (error) {
        if (error instanceof InlineMoved) return undefined;
        throw error;
      }
    },
  };
}

type Outcome = Pick<WriteOutcome, 'kind'> & { readonly revision?: number | undefined };

export function hasMoved(revisions: readonly number[], outcomes: readonly Outcome[]): boolean {
  return outcomes.some(
    ({ kind, revision }, index) => kind === 'appended' && revision !== revisions[index],
  );
}

/** Those of streams that this append has changed. */
export function documentsToWrite<Model>(
  documents: readonly { readonly model: Model; readonly writes: readonly DocumentWrite[] }[],
  appends: readonly { readonly stream: string }[],
  outcomes: readonly Outcome[],
): { readonly model: Model; readonly writes: readonly DocumentWrite[] }[] {
  const streams = new Set(
    appends.filter((_, index) => outcomes[index]?.kind === 'appended').map(({ stream }) => stream),
  );
  return documents
    .map(({ model, writes }) => ({
      model,
      writes: writes.filter(({ stream }) => streams.has(stream)),
    }))
    .filter(({ writes }) => writes.length > 0);
}
