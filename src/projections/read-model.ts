// What a read model is: where its documents live, and what they are found by.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import { applySchema } from '../contracts/apply-schema.ts';
import { checkIdentifier, checkVersion } from '../contracts/identifier.ts';
import { encodePayload } from '../contracts/json-payload.ts';
import { redisKeys } from '../contracts/redis-keys.ts';
import { MillraceError } from '../foundation/error.ts';
import { noEntries } from './rules/decide-document.ts';
import { readModelLimits as limits } from './limits.ts';
import type { DocumentEntries, DocumentWrite, ModelKey } from './read-model-store.ts';

export interface ReadModelDefinition<Document extends object> extends ModelKey {
  /** Documents are checked by it before they are written. */
  readonly schema?: StandardSchemaV1<unknown, Document> | undefined;
  /** Unique values: `code` becomes `…:index:by-code`. Undefined: not in this index. */
  readonly indexes?:
    | Readonly<Record<string, (document: Document) => string | undefined>>
    | undefined;
  /** Beside `all`, which every document belongs to. */
  readonly sets?: Readonly<Record<string, (document: Document) => boolean>> | undefined;
  /** Numbers to sort by: `updated` becomes `…:zset:by-updated`. Undefined: not in this range. */
  readonly ranges?:
    | Readonly<Record<string, (document: Document) => number | undefined>>
    | undefined;
  /**
   * Ranges of which there is one for each value: the score by the group that the document belongs to,
   * in as many as it does. `chat` with `c-1` becomes `…:zset:by-chat:c-1`. Groups are ids, not texts.
   */
  readonly groups?:
    | Readonly<Record<string, (document: Document) => Readonly<Record<string, number>>>>
    | undefined;
  /** How long a cached list lives when nothing is written. Default: 30 s. */
  readonly listTtlMs?: number | undefined;
  readonly documentBytesMax?: number | undefined;
}

export interface DocumentSource {
  readonly tenant: string;
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
}

/** As projections and queries take it: checked, with its defaults. */
export interface ReadModel<Document extends object> extends ModelKey {
  /** `banking.currency.v1`: what errors and states call it. */
  readonly name: string;
  readonly indexes: ReadonlySet<string>;
  readonly sets: ReadonlySet<string>;
  readonly ranges: ReadonlySet<string>;
  readonly groups: ReadonlySet<string>;
  readonly listTtlMs: number;
  /** Null removes. Throws what the document is refused for. */
  toWrite(source: DocumentSource, document: Document | null): DocumentWrite;
  /** What the engine keeps, as the document that it was. */
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
  const refuse = (reason: string): MillraceError =>
    new MillraceError('READ_MODEL_INVALID', `${name}: ${reason}`, { details: { model: name } });
  const namesOf = (kind: string, entries: Readonly<Record<string, unknown>>): string[] => {
    const names = Object.keys(entries);
    if (names.length > limits.entriesMax) {
      throw refuse(`it has ${names.length} of the kind '${kind}', at most ${limits.entriesMax}`);
    }
    for (const each of names) checkIdentifier(kind, each);
    return names;
  };
  const setNames = namesOf('set', sets);
  if (setNames.includes('all')) throw refuse("every document belongs to the set 'all' anyway");
  const [rangeNames, groupNames] = [namesOf('range', ranges), namesOf('group', groups)];
  const twice = groupNames.find((each) => rangeNames.includes(each));
  if (twice !== undefined) throw refuse(`'${twice}' is a range and a group`);
  if (!Number.isInteger(listTtlMs) || listTtlMs < 1) throw refuse('listTtlMs must be from 1 ms');
  if (!Number.isInteger(documentBytesMax) || documentBytesMax < 2) {
    throw refuse('documentBytesMax must be a whole number of bytes');
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
      throw refuse(`it belongs to ${grouped.length} groups, at most ${limits.groupsMax}`);
    }
    for (const { group, value, score } of grouped) {
      found.ranges[groupRange(group, value)] = scoreIn(group, score);
    }
    const belongsTo = setsOf.filter(([, holds]) => holds(document)).map(([set]) => set);
    return { ...found, sets: ['all', ...belongsTo] };
  };

  const scoreIn = (range: string, score: number): number => {
    if (!Number.isFinite(score)) throw refuse(`the range '${range}' is given ${score}`);
    // The only number that is written in two ways.
    return score === 0 ? 0 : score;
  };

  const indexValue = (index: string, value: string): string => {
    const isGood =
      typeof value === 'string' &&
      value !== '' &&
      value.length <= limits.indexCharsMax &&
      !value.includes('\0') &&
      value.isWellFormed();
    if (isGood) return value;
    throw refuse(`the index '${index}' takes texts of 1 to ${limits.indexCharsMax} characters`);
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
      // The longest key that an engine makes of it; all engines refuse the same names.
      redisKeys.hash(tenant, bc, aggregate, version, id);
      if (!Number.isSafeInteger(revision) || revision < 0) {
        throw refuse(`${revision} is not the revision of an event`);
      }
      if (document === null)
        return { tenant, id, stream, revision, document: null, entries: noEntries };
      const kept = schema === undefined ? document : applySchema(name, schema, document);
      if (typeof kept !== 'object' || kept === null || Array.isArray(kept)) {
        throw refuse('a document must be an object');
      }
      const { json } = encodePayload(kept, { payloadBytesMax: documentBytesMax });
      const entries = entriesOf(kept);
      for (const range of Object.keys(entries.ranges)) {
        if (range.includes(':')) redisKeys.zset(tenant, bc, aggregate, version, range);
      }
      return { tenant, id, stream, revision, document: json, entries };
    },
    parse: (text) => JSON.parse(text) as Document,
  };
}

/** What engines call the range of one group: no range has a colon in its name. */
export function groupRange(group: string, value: string): string {
  return `${group}:${value}`;
}
