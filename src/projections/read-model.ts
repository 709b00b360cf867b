// The definition of a read model: its name, its indexes, sets, ranges and groups.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import { applySchema } from '../contracts/apply-schema.ts';
import { checkIdentifier, checkVersion } from '../contracts/identifier.ts';
import { encodePayload } from '../contracts/json-payload.ts';
import { checkDocumentId, checkRangeName } from '../contracts/redis-keys.ts';
import { MillraceError } from '../foundation/error.ts';
import type { DocumentEntries, DocumentWrite, ModelKey } from './read-model-store.ts';
import { noEntries } from './rules/decide-document.ts';

/** Defaults and limits of read models. */
export const readModelLimits = {
  documentBytesMax: 1_048_576,
  /** Index values are codes, not free text. */
  indexCharsMax: 255,
  /** Maximum number of indexes, of sets and of ranges of a model. */
  entriesMax: 32,
  /** Maximum number of groups of a document. */
  groupsMax: 4_096,
  pageSize: 100,
  pageSizeMax: 1_000,
  /** Maximum number of ids in a cached list. */
  listIdsMax: 10_000,
  listTtlMs: 30_000,
  /** Maximum number of documents per write or load. */
  batchMax: 10_000,
  /** Documents per step when a version is retired. */
  clearStep: 500,
} as const;

const limits = readModelLimits;

export interface ReadModelDefinition<Document extends object> extends ModelKey {
  /** Validates documents before they are written. */
  readonly schema?: StandardSchemaV1<unknown, Document> | undefined;
  /** Unique values: `code` becomes `…:index:by-code`. Undefined leaves the document out. */
  readonly indexes?:
    | Readonly<Record<string, (document: Document) => string | undefined>>
    | undefined;
  /** Sets in addition to `all`, which contains every document. */
  readonly sets?: Readonly<Record<string, (document: Document) => boolean>> | undefined;
  /** Numbers to sort by: `updated` becomes `…:zset:by-updated`. Undefined leaves the document out. */
  readonly ranges?:
    | Readonly<Record<string, (document: Document) => number | undefined>>
    | undefined;
  /**
   * Ranges per group value: returns the score of the document in each of its groups. `chat` with `c-1`
   * becomes `…:zset:by-chat:c-1`. Group values are ids, not free text.
   */
  readonly groups?:
    | Readonly<Record<string, (document: Document) => Readonly<Record<string, number>>>>
    | undefined;
  /** Lifetime of a cached list without writes. Default: 30 s. */
  readonly listTtlMs?: number | undefined;
  readonly documentBytesMax?: number | undefined;
}

export interface DocumentSource {
  readonly tenant: string;
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
}

/** A validated definition with its defaults. */
export interface ReadModel<Document extends object> extends ModelKey {
  /** `banking.currency.v1`, for errors and status. */
  readonly name: string;
  readonly indexes: ReadonlySet<string>;
  readonly sets: ReadonlySet<string>;
  readonly ranges: ReadonlySet<string>;
  readonly groups: ReadonlySet<string>;
  readonly listTtlMs: number;
  /** Null removes the document. Throws if the document is invalid. */
  toWrite(source: DocumentSource, document: Document | null): DocumentWrite;
  /** Parses the stored JSON. */
  parse(text: string): Document;
}

/**
 * Defines a read model; `documentsOf` reads and writes it, `projection` fills it from events.
 *
 * @example
 * import { readModel } from 'millrace/projections';
 *
 * interface Currency { readonly code: string; readonly enabled: boolean; readonly updatedAt: string }
 *
 * const currencies = readModel<Currency>({
 *   bc: 'banking',
 *   aggregate: 'currency',
 *   version: 1,
 *   indexes: { code: ({ code }) => code },
 *   sets: { enabled: ({ enabled }) => enabled },
 *   ranges: { updated: ({ updatedAt }) => Date.parse(updatedAt) },
 * });
 */
export function readModel<Document extends object>(
  definition: ReadModelDefinition<Document>,
): ReadModel<Document> {
  const { bc, aggregate, version, schema, layout } = definition;
  const { indexes = {}, sets = {}, ranges = {}, groups = {} } = definition;
  const { listTtlMs = limits.listTtlMs, documentBytesMax = limits.documentBytesMax } = definition;
  checkIdentifier('bounded context', bc);
  checkIdentifier('aggregate', aggregate);
  checkVersion(version);
  const name = `${bc}.${aggregate}.v${version}`;
  const invalid = (reason: string): MillraceError =>
    new MillraceError('READ_MODEL_INVALID', `${name}: ${reason}`, { details: { model: name } });
  const namesOf = (kind: string, entries: Readonly<Record<string, unknown>>): string[] => {
    const names = Object.keys(entries);
    if (names.length > limits.entriesMax) {
      throw invalid(
        `${names.length} entries of kind '${kind}' exceed the maximum of ${limits.entriesMax}`,
      );
    }
    for (const each of names) checkIdentifier(kind, each);
    return names;
  };
  const setNames = namesOf('set', sets);
  if (setNames.includes('all')) throw invalid("the set 'all' is reserved");
  const [rangeNames, groupNames] = [namesOf('range', ranges), namesOf('group', groups)];
  const ambiguous = groupNames.find((each) => rangeNames.includes(each));
  if (ambiguous !== undefined) throw invalid(`'${ambiguous}' names both a range and a group`);
  if (!Number.isInteger(listTtlMs) || listTtlMs < 1)
    throw invalid('listTtlMs must be a positive integer');
  if (!Number.isInteger(documentBytesMax) || documentBytesMax < 2) {
    throw invalid('documentBytesMax must be an integer from 2');
  }
  const indexesOf = Object.entries(indexes);
  const setsOf = Object.entries(sets);
  const rangesOf = Object.entries(ranges);
  const groupsOf = Object.entries(groups);

  const entriesOf = (document: Document): DocumentEntries => {
    const found = { indexes: {} as Record<string, string>, ranges: {} as Record<string, number> };
    for (const [index, valueOf] of indexesOf) {
      const value = valueOf(document);
      if (value === undefined) continue;
      found.indexes[index] = indexValue(index, value);
    }
    for (const [range, scoreOf] of rangesOf) {
      const score = scoreOf(document);
      if (score === undefined) continue;
      found.ranges[range] = scoreIn(range, score);
    }
    const grouped = groupsOf.flatMap(([group, scoresOf]) =>
      Object.entries(scoresOf(document)).map(([value, score]) => ({ group, value, score })),
    );
    if (grouped.length > limits.groupsMax) {
      throw invalid(
        `${grouped.length} groups of a document exceed the maximum of ${limits.groupsMax}`,
      );
    }
    for (const { group, value, score } of grouped) {
      found.ranges[groupRange(group, value)] = scoreIn(group, score);
    }
    const belongsTo = setsOf.filter(([, holds]) => holds(document)).map(([set]) => set);
    return { ...found, sets: ['all', ...belongsTo] };
  };

  const scoreIn = (range: string, score: number): number => {
    if (!Number.isFinite(score))
      throw invalid(`the score ${score} of range '${range}' is not finite`);
    // Normalizes -0.
    return score === 0 ? 0 : score;
  };

  const indexValue = (index: string, value: string): string => {
    const isValid =
      typeof value === 'string' &&
      value !== '' &&
      value.length <= limits.indexCharsMax &&
      !value.includes('\0') &&
      value.isWellFormed();
    if (isValid) return value;
    throw invalid(
      `a value of index '${index}' must be a string of 1 to ${limits.indexCharsMax} characters`,
    );
  };

  return {
    bc,
    aggregate,
    version,
    layout,
    name,
    indexes: new Set(namesOf('index', indexes)),
    sets: new Set(['all', ...setNames]),
    ranges: new Set(rangeNames),
    groups: new Set(groupNames),
    listTtlMs,
    toWrite({ tenant, id, stream, revision }, document) {
      checkDocumentId(tenant, bc, aggregate, version, id);
      if (!Number.isSafeInteger(revision) || revision < 0) {
        throw invalid(`invalid revision ${revision}`);
      }
      if (document === null)
        return { tenant, id, stream, revision, document: null, entries: noEntries };
      const validated = schema === undefined ? document : applySchema(name, schema, document);
      if (typeof validated !== 'object' || validated === null || Array.isArray(validated)) {
        throw invalid('a document must be an object');
      }
      const { json } = encodePayload(validated, { payloadBytesMax: documentBytesMax });
      const entries = entriesOf(validated);
      for (const range of Object.keys(entries.ranges)) {
        if (range.includes(':')) checkRangeName(tenant, bc, aggregate, version, range);
      }
      return { tenant, id, stream, revision, document: json, entries };
    },
    parse: (text) => JSON.parse(text) as Document,
  };
}

/** The engine's name for the range of one group; range names contain no colon. */
export function groupRange(group: string, value: string): string {
  return `${group}:${value}`;
}
