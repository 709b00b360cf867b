// What the suite asks of an adapter, and what its cases are made of.

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

/** How the suite gets stores of the adapter under test. */
export interface ReadModelFixture {
  /** What the adapter claims; a case that needs more is skipped, by name. */
  readonly capabilities: ReadModelCapabilities;
  /** May be the same one each time; whoever opened it closes it. */
  open(): Promise<ReadModelStore>;
  /** One more connection to the same data, as another process would have it (`crossProcess`). */
  second?(): Promise<ReadModelStore>;
  /** One that was closed. */
  closed?(): Promise<ReadModelStore>;
}

export interface ReadModelCase {
  /** A sentence; its topic comes first. */
  readonly name: string;
  /** Why this case says nothing about the adapter: `needs crossProcess`. */
  readonly skip?: string;
  /** Rejects when the adapter does not do what the name says. */
  readonly run: () => Promise<void>;
}

export interface Currency {
  readonly code: string;
  readonly name?: string;
  readonly enabled?: boolean;
  readonly updated?: number;
  /** Region → rank. */
  readonly regions?: Readonly<Record<string, number>>;
}

export interface ReadModelContext {
  readonly store: ReadModelStore;
  readonly fixture: ReadModelFixture;
  /** Of a namespace of its own for each case. */
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

/** Of the stream that belongs to the id. */
export function from(id: string, revision: number, tenant = 'core'): DocumentSource {
  return { tenant, id, stream: `banking.currency.v1-${tenant}-${id}`, revision };
}

/** The ids of all pages; without `orderedSets` in any order and perhaps twice, so sorted here. */
export async function walk(
  read: (cursor: string | undefined) => Promise<Page<Currency>>,
  order: 'kept' | 'any' = 'kept',
): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < 1_000; pages += 1) {
    const page = await read(cursor);
    ids.push(...page.items.map(({ id }) => id));
    ({ cursor } = page);
    if (cursor === undefined) return order === 'kept' ? ids : [...new Set(ids)].toSorted();
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
