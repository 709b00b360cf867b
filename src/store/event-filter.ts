// Filters events by type, stream, category and tenant, in time linear in the length of the string.

import { RE2JS } from 're2js';
import { regexSize } from '../foundation/regex-size.ts';
import { MillraceError } from '../foundation/error.ts';
import { categoryOf } from './stream-category.ts';
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

/** All patterns must match, and none of `excluded`: RE2 has no look-ahead, which filters of EventStoreDB clients often have. */
interface SplitPattern {
  readonly patterns: readonly string[];
  readonly excluded: readonly string[];
}

/** `^`, then literal characters up to the first look-ahead. Letters after a backslash have another meaning. */
const beginning = /^\^(?:[^\\^$.|?*+()[\]{}]|\\[^A-Za-z0-9])*(?=\(\?[=!])/;
const token = /\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?|./gs;

function splitLookAheads(pattern: string): SplitPattern {
  const [start] = beginning.exec(pattern) ?? [];
  if (start === undefined) return { patterns: [pattern], excluded: [] };
  const patterns: string[] = [];
  const excluded: string[] = [];
  let rest = pattern.slice(start.length);
  for (let kind = /^\(\?[=!]/.exec(rest); kind !== null; kind = /^\(\?[=!]/.exec(rest)) {
    const end = endOfGroup(rest);
    // A repeated look-ahead, or one that does not end: RE2 rejects the pattern.
    if (end === undefined || /^[*+?{]/.test(rest.slice(end)))
      return { patterns: [pattern], excluded: [] };
    const part = `${start}(?:${rest.slice(3, end - 1)})`;
    (kind[0] === '(?=' ? patterns : excluded).push(part);
    rest = rest.slice(end);
  }
  // The look-ahead belongs to the first alternative only.
  if (hasAlternatives(rest)) return { patterns: [pattern], excluded: [] };
  return { patterns: [...patterns, `${start}${rest}`], excluded };
}

/** Where the group that begins the text ends. */
function endOfGroup(text: string): number | undefined {
  let depth = 0;
  for (const { 0: part, index } of text.matchAll(token)) {
    if (part === '(') depth += 1;
    if (part === ')') depth -= 1;
    if (depth === 0) return index + 1;
  }
  return undefined;
}

function hasAlternatives(text: string): boolean {
  let depth = 0;
  for (const [part] of text.matchAll(token)) {
    if (part === '(') depth += 1;
    if (part === ')') depth -= 1;
    if (part === '|' && depth === 0) return true;
  }
  return false;
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
