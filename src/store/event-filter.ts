// Filters events by type, stream, category and tenant, in time linear in the length of the string.

import { RE2JS } from 're2js';
import { regexSize } from '../foundation/regex-size.ts';
import { MillraceError } from '../foundation/error.ts';
import { categoryOf } from './stream-category.ts';
import { splitLookAheads } from './look-ahead.ts';
import type { RowFilter } from './store-engine.ts';

/**
 * An event must match all given parts, and one item of each list. Patterns are regular expressions without
 * back-references, and with look-ahead only after a literal beginning (`^order-(?!test)`), so matching takes linear time.
 */
export interface EventFilter {
  readonly types?: readonly string[] | undefined;
  readonly typePrefixes?: readonly string[] | undefined;
  readonly typePattern?: string | undefined;
  readonly streamPrefixes?: readonly string[] | undefined;
  readonly streamPattern?: string | undefined;
  /** `<bc>.<agg>.v<version>`, as in `$ce-<category>`. */
  readonly category?: string | undefined;
  readonly tenant?: string | undefined;
  /** Includes events whose type starts with `$` (metadata, tombstones). Default: no. */
  readonly system?: boolean | undefined;
}

/** Whether the filter selects streams. */
export function namesStreams({ category, streamPrefixes, streamPattern }: EventFilter): boolean {
  return (category ?? streamPrefixes ?? streamPattern) !== undefined;
}

/** Whether the filter selects event types. */
export function namesTypes({ types, typePrefixes, typePattern }: EventFilter): boolean {
  return (types ?? typePrefixes ?? typePattern) !== undefined;
}

export const filterLimits = {
  patternCharsMax: 1_000,
  /** Instructions of the compiled pattern. */
  patternSizeMax: 10_000,
  listItemsMax: 1_000,
} as const;

type Test = (text: string) => boolean;

/** Compiles a filter into the functions that engines evaluate. */
export function compileFilter(filter: EventFilter = {}): RowFilter {
  const byType = both(
    both(
      anyOf(filter.types, (item) => (text) => text === item),
      byPrefix(filter.typePrefixes),
    ),
    byPattern('typePattern', filter.typePattern),
  );
  return {
    type: filter.system === true ? byType : both(byType, (type) => !type.startsWith('$')),
    category: filter.category,
    tenant: filter.tenant,
    stream: both(byPrefix(filter.streamPrefixes), byPattern('streamPattern', filter.streamPattern)),
    given: filter,
  };
}

export function matchesRow(
  filter: RowFilter,
  { type, stream }: { readonly type: string; readonly stream: string },
  tenant: string,
): boolean {
  return (
    filter.type?.(type) !== false &&
    (filter.tenant === undefined || filter.tenant === tenant) &&
    (filter.category === undefined || filter.category === categoryOf(stream)) &&
    filter.stream?.(stream) !== false
  );
}

function byPrefix(prefixes: readonly string[] | undefined): Test | undefined {
  return anyOf(prefixes, (prefix) => (text) => text.startsWith(prefix));
}

function byPattern(name: string, pattern: string | undefined): Test | undefined {
  if (pattern === undefined) return undefined;
  if (pattern.length > filterLimits.patternCharsMax) {
    throw invalid(name, `has more than ${filterLimits.patternCharsMax} characters`);
  }
  if (regexSize(pattern) > filterLimits.patternSizeMax) {
    throw invalid(name, 'repeats too much: use smaller numbers in {…}');
  }
  try {
    const { patterns, excluded } = splitLookAheads(pattern);
    const compile = (each: string): Test => {
      const compiled = RE2JS.compile(each);
      return (text) => compiled.matcher(text).find();
    };
    const [wanted, unwanted] = [patterns.map(compile), excluded.map(compile)];
    return (text) => wanted.every((test) => test(text)) && !unwanted.some((test) => test(text));
  } catch (error) {
    throw invalid(
      name,
      'is not a valid RE2 regular expression (look-ahead only after a literal beginning, no back-references)',
      error,
    );
  }
}

function anyOf(
  items: readonly string[] | undefined,
  toTest: (item: string) => Test,
): Test | undefined {
  if (items === undefined) return undefined;
  if (items.length > filterLimits.listItemsMax) {
    throw invalid('a list', `has more than ${filterLimits.listItemsMax} items`);
  }
  const tests = items.map(toTest);
  return (text) => tests.some((test) => test(text));
}

function both(a: Test | undefined, b: Test | undefined): Test | undefined {
  if (a === undefined) return b;
  return b === undefined ? a : (text) => a(text) && b(text);
}

function invalid(part: string, reason: string, cause?: unknown): MillraceError {
  return new MillraceError('FILTER_INVALID', `${part} of the filter ${reason}`, {
    details: { part, reason },
    cause,
  });
}
