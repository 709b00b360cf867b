// The port for appending events and writing their documents in one transaction, for databases that store
// both.

import type { AppendResult, EventStore } from '../store/event-store.ts';
import { EngineTransaction, type WriteOutcome } from '../store/store-engine.ts';
import type { DocumentWrite, ModelKey } from './read-model-store.ts';

/** Documents computed before the append; valid only if no other append comes first. */
export interface InlinePlan {
  /** The required revision of the last event of each append. */
  readonly revisions: readonly number[];
  readonly documents: readonly {
    readonly model: ModelKey;
    readonly writes: readonly DocumentWrite[];
  }[];
}

export interface InlineAppends {
  /**
   * Passes `append` the transaction for the store. Returns undefined, without a change, if another append to
   * a stream came first. A version conflict throws as usual. Duplicate events write no documents.
   */
  commit(
    plan: InlinePlan,
    append: (transaction: unknown) => Promise<readonly AppendResult[]>,
  ): Promise<readonly AppendResult[] | undefined>;
}

/** The role of an engine that supports inline projections. */
export interface InlineRoles {
  readonly store: EventStore;
  readonly inlineAppends: InlineAppends;
}

/** Thrown inside an engine to cancel an append after another append to the stream. */
export class InlineMoved extends Error {
  override readonly name = 'InlineMoved';
}

/** Carries the plan to engines that take it with the append instead of a transaction. */
export class InlineTransaction extends EngineTransaction<InlinePlan> {}

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

/** The documents of the streams that this append changed. */
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
