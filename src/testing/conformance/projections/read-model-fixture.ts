// The fixture of the suite, and helpers of its cases.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ErrorCode } from '../../../foundation/error-codes.ts';
import { hasCode } from '../../../foundation/error.ts';
import { documentsOf, type Documents, type Page } from '../../../projections/documents.ts';
import { readModel, type DocumentSource, type ReadModel } from '../../../projections/read-model.ts';
import type {
  ReadModelCapabilities,
  ReadModelStore,
} from '../../../projections/read-model-store.ts';

/** Provides stores of the adapter under test. */
export interface ReadModelFixture {
  /** The capabilities of the adapter; cases that need others are skipped. */
  readonly capabilities: ReadModelCapabilities;
  /** Opens a store; it may return the same instance each time. The fixture closes the store. */
  open(): Promise<ReadModelStore>;
  /** Opens a second connection to the same data, like another process (`crossProcess`). */
  second?(): Promise<ReadModelStore>;
  /** Replaces the stored records of index entries of all documents of a model without the store. */
  damage?(model: string, json: string): Promise<void>;
  /** Returns a store that is already closed. */
  closed?(): Promise<ReadModelStore>;
}

export interface ReadModelCase {
  /** The topic, followed by a sentence. */
  readonly name: string;
  /** Why the case is skipped: `needs crossProcess`. */
  readonly skip?: string | undefined;
  /** Rejects if the adapter fails the case. */
  readonly run: () => Promise<void>;
}

export interface Currency {
  readonly code: string;
  readonly name?: string;
  readonly about?: string;
  readonly enabled?: boolean;
  readonly updated?: number;
  /** The rank of the document in each region. */
  readonly regions?: Readonly<Record<string, number>>;
}

export interface ReadModelContext {
  readonly store: ReadModelStore;
  readonly fixture: ReadModelFixture;
  /** The documents of the case, in a separate namespace. */
  readonly model: ReadModel<Currency>;
  readonly documents: Documents<Currency>;
}

type CaseBody = (context: ReadModelContext) => Promise<void>;

export type ReadModelCases = Readonly<
  Record<
    string,
    CaseBody | { readonly needs: keyof ReadModelCapabilities | 'closed'; readonly run: CaseBody }
  >
>;

export function newAggregate(): string {
  return `c${randomUUID().replaceAll('-', '')}`;
}

export function currencies(aggregate: string, version = 1): ReadModel<Currency> {
  return readModel<Currency>({
    bc: 'conformance',
    aggregate,
    version,
    indexes: { code: ({ code }) => code, 'display-name': ({ name }) => name },
    sets: { enabled: ({ enabled }) => enabled === true, named: ({ name }) => name !== undefined },
    ranges: { updated: ({ updated }) => updated },
    groups: { region: ({ regions = {} }) => regions },
    documentBytesMax: 10_000,
  });
}

export async function contextOf(fixture: ReadModelFixture): Promise<ReadModelContext> {
  const store = await fixture.open();
  const model = currencies(newAggregate());
  return { store, fixture, model, documents: documentsOf(store, model) };
}

/** The origin of a write: the stream of the id and a revision. */
export function from(id: string, revision: number, tenant = 'core'): DocumentSource {
  return { tenant, id, stream: `banking.currency.v1-${tenant}-${id}`, revision };
}

/**
 * Returns the ids of all pages. With the order `any`, for engines without `orderedSets`, it removes duplicates and
 * sorts.
 */
export async function walk(
  read: (cursor: string | undefined) => Promise<Page<Currency>>,
  order: 'returned' | 'any' = 'returned',
): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < 1_000; pages += 1) {
    const page = await read(cursor);
    ids.push(...page.items.map(({ id }) => id));
    ({ cursor } = page);
    if (cursor === undefined) return order === 'returned' ? ids : [...new Set(ids)].toSorted();
  }
  return assert.fail('the pages never end');
}

export function allOf(
  documents: Documents<Currency>,
  set = 'all',
  tenant = 'core',
): Promise<string[]> {
  return walk((cursor) => documents.bySet(tenant, set, { limit: 2, cursor }), 'any');
}

export function rangeOf(documents: Documents<Currency>, tenant = 'core'): Promise<string[]> {
  return walk((cursor) => documents.byRange(tenant, 'updated', { limit: 2, cursor }));
}

export async function assertCode(code: ErrorCode, work: () => Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => hasCode(error, code), `must be ${code}`);
}
