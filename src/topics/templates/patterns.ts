// Functions of templates over regular expressions. RE2 does not backtrack: a search takes at most as many steps as the
// characters that it reads, times the instructions of its pattern. That product is charged.

import { RE2JS } from 're2js';
import { regexSize } from '../../foundation/regex-size.ts';
import { bounded, failed, int, prefixed, text, type TemplateFunctions } from './arguments.ts';
import type { TemplateBudget } from './budget.ts';

interface Match {
  readonly start: number;
  readonly end: number;
  readonly groups: readonly (string | null)[];
  readonly named: Readonly<Record<string, number>>;
}

const patternLimits = { charsMax: 1_000, instructionsMax: 2_000 } as const;

export function patternFunctions(budget: TemplateBudget): TemplateFunctions {
  function matches(pattern: string, value: string, count: number): readonly Match[] {
    const regex = compiled(pattern, budget);
    if (regex instanceof Error) return failed(regex.message);
    return matchesOf(regex, { value, count, budget });
  }

  function replaced(pattern: string, value: string, by: (match: Match) => string): string {
    let result = '';
    let last = 0;
    for (const match of matches(pattern, value, -1)) {
      const part = by(match);
      budget.charge(part.length);
      result = bounded(result + value.slice(last, match.start) + part);
      last = match.end;
    }
    return result + value.slice(last);
  }

  const strict: TemplateFunctions = {
    regexMatch: (pattern, value) => matches(text(pattern), text(value), 1).length > 0,
    regexFind: (pattern, value) => matches(text(pattern), text(value), 1)[0]?.groups[0] ?? '',
    regexFindAll: (pattern, value, count) =>
      matches(text(pattern), text(value), int(count)).map(({ groups }) => groups[0] ?? ''),
    regexReplaceAll: (pattern, value, by) =>
      replaced(text(pattern), text(value), (match) => expanded(text(by), match, budget)),
    regexReplaceAllLiteral: (pattern, value, by) =>
      replaced(text(pattern), text(value), () => text(by)),
    regexSplit: (pattern, value, count) =>
      text(pattern) !== '' && text(value) === '' && int(count) !== 0
        ? ['']
        : splitBy(matches(text(pattern), text(value), -1), text(value), int(count)),
  };
  return {
    ...strict,
    ...prefixed('must', strict),
    // Returns false for an invalid pattern, unlike `mustRegexMatch`.
    regexMatch(pattern, value) {
      const regex = compiled(text(pattern), budget);
      const search = { value: text(value), count: 1, budget };
      return !(regex instanceof Error) && matchesOf(regex, search).length > 0;
    },
  };
}

/** An error: the pattern is invalid. */
function compiled(pattern: string, budget: TemplateBudget): RE2JS | Error {
  const size = pattern.length > patternLimits.charsMax ? Infinity : regexSize(pattern);
  if (size > patternLimits.instructionsMax) return failed('the regular expression is too large');
  // Classes of Unicode are tables, which are merged and folded.
  budget.charge(3_000 + size * 150 + (pattern.match(/\\p/gi)?.length ?? 0) * 20_000);
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** RE2 takes a `String` object, too, and reads it by `charCodeAt` and `indexOf`. */
class MeteredText extends String {
  readonly #charge: (chars: number) => void;
  constructor(value: string, charge: (chars: number) => void) {
    super(value);
    this.#charge = charge;
  }
  override charCodeAt(at: number): number {
    this.#charge(1);
    return super.charCodeAt(at);
  }
  override indexOf(part: string, from = 0): number {
    const at = super.indexOf(part, from);
    this.#charge(((at === -1 ? this.length : at) - from) * (1 + part.length / 16));
    return at;
  }
}

/** At most `count` matches; all of them if it is negative. */
function matchesOf(
  regex: RE2JS,
  {
    value,
    count,
    budget,
  }: { readonly value: string; readonly count: number; readonly budget: TemplateBudget },
): readonly Match[] {
  const size = regex.programSize();
  const metered: unknown = new MeteredText(value, (chars) => {
    budget.charge(chars * size * 2);
  });
  const matcher = regex.matcher(metered as string);
  const named = regex.namedGroups();
  const found: Match[] = [];
  while (count < 0 || found.length < count) {
    // A search clears one bit for each instruction and character of small inputs.
    budget.charge(100 + Math.min(262_144, size * value.length) / 256);
    if (!matcher.find()) break;
    const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, at) => matcher.group(at));
    budget.charge(groups.length * 10);
    const [start, end] = [matcher.start(), matcher.end()];
    // Go skips an empty match right after another match.
    const before = found.at(-1);
    if (start === end && before !== undefined && before.end === start) continue;
    found.push({ start, end, groups, named });
  }
  return found;
}

/** Expands `$1`, `${name}`, and `$$` for a dollar; an unknown group is empty. */
function expanded(by: string, { groups, named }: Match, budget: TemplateBudget): string {
  budget.charge(by.length * 10);
  return by.replaceAll(
    /\$(?:\$|\{(\w+)\}|(\w+))/g,
    (whole, braced: string | undefined, bare: string | undefined) => {
      if (whole === '$$') return '$';
      const name = braced ?? bare ?? '';
      const at = /^\d+$/.test(name) ? Number(name) : named[name];
      const group = (at === undefined ? undefined : groups[at]) ?? '';
      budget.charge(group.length);
      return group;
    },
  );
}

function splitBy(matches: readonly Match[], value: string, count: number): string[] {
  if (count === 0) return [];
  const result: string[] = [];
  let [begin, end] = [0, 0];
  for (const match of matches) {
    if (count > 0 && result.length === count - 1) break;
    ({ start: end } = match);
    if (match.end !== 0) result.push(value.slice(begin, end));
    begin = match.end;
  }
  if (end !== value.length) result.push(value.slice(begin));
  return result;
}
