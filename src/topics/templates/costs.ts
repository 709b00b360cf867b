// What each template function charges before it runs: a bound on the work that it does with its arguments.

import { functionLimits } from './arguments.ts';
import { units, type TemplateBudget } from './budget.ts';
import type { TemplateValue } from './values.ts';

type TemplateCost = (budget: TemplateBudget, values: readonly TemplateValue[]) => void;

const chars = (value: TemplateValue): number => (typeof value === 'string' ? value.length : 0);
const count = (value: TemplateValue, max: number): number =>
  typeof value === 'bigint' ? Math.min(Math.abs(Number(value)), max) : 0;

/** The same work for all arguments. */
const constant =
  (amount = 0): TemplateCost =>
  (budget) => {
    budget.charge(amount);
  };

/** Work proportional to the characters, items and keys of the arguments. */
const own =
  (factor = 1, amount = 0): TemplateCost =>
  (budget, values) => {
    const before = budget.spent;
    for (const value of values) budget.chargeOwn(value);
    budget.charge(amount + (budget.spent - before) * (factor - 1));
  };

/** Work proportional to the texts among the arguments, which are keys. */
const keyed: TemplateCost = (budget, values) => {
  for (const value of values) budget.charge(chars(value));
};

/** Work proportional to the arguments and all values in them. */
const tree =
  (factor = 1): TemplateCost =>
  (budget, values) => {
    const before = budget.spent;
    for (const value of values) budget.chargeTree(value);
    budget.charge((budget.spent - before) * (factor - 1));
  };

/** The search for a text in another one compares each pair of characters in the worst case. */
const searched = (text: TemplateValue, part: TemplateValue): number =>
  chars(text) * (1 + chars(part) / 16);

const split =
  (unitsPerPart: number): TemplateCost =>
  (budget, values) => {
    const [by, text] = [values[0], values.at(-1)];
    budget.charge(searched(text, by) + (chars(text) / Math.max(1, chars(by))) * unitsPerPart);
  };

const indent: TemplateCost = (budget, [by, text]) => {
  budget.charge(chars(text) * (1 + count(by, functionLimits.indentMax) / 4));
};

/** `Intl` makes a format for the zone and for each abbreviation of a zone. */
const date: TemplateCost = (budget, values) => {
  const text = values.reduce<number>((sum, value) => sum + chars(value), 0);
  budget.charge(2 * units.time + text * 50);
};

/** A layout becomes a regular expression with at most this many instructions for each of its characters. */
const parsedDate: TemplateCost = (budget, [layout, value]) => {
  const size = Math.min(chars(layout), 256) * 15;
  budget.charge(2_000 + size * 100 + size * Math.min(chars(value), 256) * 2);
};

const special: Readonly<Record<string, TemplateCost>> = {
  printf: (budget, values) => {
    tree(3)(budget, values);
    budget.charge(chars(values[0]) * 10 + values.length * 250);
  },
  dict: (budget, values) => {
    for (let at = 0; at < values.length; at += 2) budget.chargeTree(values[at]);
    budget.charge(values.length * units.key);
  },
  set: (budget, [into, key, value]) => {
    budget.charge(chars(key));
    budget.chargeTree(value, into);
  },
  repeat: (budget, [times, text]) => {
    budget.charge(count(times, functionLimits.loopsMax) * Math.max(1, chars(text)));
  },
  replace: (budget, [from, to, text]) => {
    budget.charge(searched(text, from));
    budget.charge((chars(text) / Math.max(1, chars(from)) + 1) * (10 + chars(to)));
  },
  contains: (budget, [part, text]) => {
    budget.charge(searched(text, part));
  },
  indent,
  nindent: indent,
  join: (budget, [by, values]) => {
    budget.chargeTree(values);
    budget.charge((Array.isArray(values) ? values.length : 1) * chars(by));
  },
  split: split(30),
  splitn: split(30),
  splitList: split(6),
};

const groups: readonly (readonly [cost: TemplateCost, names: string])[] = [
  [
    constant(),
    `ternary typeOf kindOf first mustFirst last mustLast
     add1 sub div mod add mul max biggest min unixEpoch`,
  ],
  [keyed, 'index get hasKey dig unset'],
  [constant(100), 'now randInt round ago duration'],
  [constant(500), 'durationRound'],
  // At most 10,000 numbers.
  [constant(100_000), 'until untilStep seq'],
  [
    own(),
    `and or not empty default coalesce all any eq ne lt le gt ge len fail typeIs typeIsLike kindIs
     append push prepend mustAppend mustPush mustPrepend rest mustRest initial mustInitial
     reverse mustReverse compact mustCompact chunk mustChunk slice mustSlice
     values list tuple concat keys pluck pick omit
     floor ceil maxf minf atoi dateModify mustDateModify
     trim trimPrefix trimSuffix hasPrefix hasSuffix plural trunc substr isAbs osIsAbs`,
  ],
  [own(5), 'upper lower ext osExt b64enc b64dec adler32sum regexQuoteMeta'],
  [own(2, 500), 'sha1sum sha256sum sha512sum fromJSON mustFromJSON'],
  [own(20), 'title trimAll base osBase dir osDir clean osClean urlParse'],
  [own(60), 'b32enc b32dec'],
  [tree(), 'toString toStrings toDecimal cat squote print println'],
  [tree(3), 'deepEqual has mustHas uniq mustUniq without mustWithout quote'],
  [
    tree(10),
    `html js urlquery urlJoin sortAlpha toJSON mustToJSON toPrettyJSON mustToPrettyJSON toRawJSON
     mustToRawJSON`,
  ],
  [date, 'date dateInZone htmlDate htmlDateInZone'],
  [parsedDate, 'toDate mustToDate'],
  // Patterns charge what they read (`patterns.ts`).
  [
    own(),
    `regexMatch mustRegexMatch regexFind mustRegexFind regexFindAll mustRegexFindAll
     regexReplaceAll mustRegexReplaceAll regexReplaceAllLiteral mustRegexReplaceAllLiteral
     regexSplit mustRegexSplit`,
  ],
];

export const templateCosts: ReadonlyMap<string, TemplateCost> = new Map([
  ...groups.flatMap(([cost, names]) =>
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, cost] as const),
  ),
  ...Object.entries(special),
]);
