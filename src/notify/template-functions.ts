// The functions of templates: Go's own, and those of sprig that ntfy has and people use.

import { shownValue } from './template-values.ts';
import {
  compareValues,
  equalValues,
  isEmptyValue,
  lengthOf,
  type TemplateValue,
} from './template-values.ts';
import { TemplateProblem } from './template-syntax.ts';

type TemplateFunction = (...values: TemplateValue[]) => TemplateValue;

const textBytesMax = 1_048_576;

const fail = (message: string): never => {
  throw new TemplateProblem('failed', message);
};
const text = (value: TemplateValue): string =>
  value === undefined || value === null ? '' : shownValue(value);
const whole = (value: TemplateValue): bigint => {
  const number = Number(typeof value === 'string' ? value.trim() : value);
  return Number.isFinite(number) ? BigInt(Math.trunc(number)) : 0n;
};
const list = (value: TemplateValue): TemplateValue[] =>
  Array.isArray(value) ? value : fail(`cannot use ${typeof value} as a list`);
const short = (made: string): string =>
  made.length > textBytesMax ? fail('the text is too long') : made;
const chars = (value: TemplateValue): string[] => Array.from(text(value));
const record = (value: TemplateValue): Record<string, TemplateValue> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? value
    : fail('not a dictionary');
const upperFirst = (word: string): string =>
  word.replace(
    /(^|[\s\-_/.,:;!?'"()[\]{}])(\p{L})/gu,
    (_, before: string, letter: string) => before + letter.toUpperCase(),
  );

const functions: Readonly<Record<string, TemplateFunction>> = {
  and: (...values) => values.find((value) => isEmptyValue(value)) ?? values.at(-1),
  or: (...values) => values.find((value) => !isEmptyValue(value)) ?? values.at(-1),
  not: (value) => isEmptyValue(value),
  eq: (first, ...others) => others.some((other) => equalValues(first, other)),
  ne: (first, second) => !equalValues(first, second),
  lt: (first, second) => compareValues(first, second) < 0,
  le: (first, second) => compareValues(first, second) <= 0,
  gt: (first, second) => compareValues(first, second) > 0,
  ge: (first, second) => compareValues(first, second) >= 0,
  len: (value) => BigInt(lengthOf(value)),
  index: (value, ...keys) => keys.reduce<TemplateValue>(indexed, value),
  slice: (value, from, to) =>
    Array.isArray(value)
      ? value.slice(Number(from ?? 0), to === undefined ? undefined : Number(to))
      : text(value).slice(Number(from ?? 0), to === undefined ? undefined : Number(to)),
  print: (...values) => values.map(text).join(' '),
  println: (...values) => `${values.map(text).join(' ')}\n`,
  printf: (format, ...values) => printf(text(format), values),
  html: (value) => text(value).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`),
  urlquery: (value) => encodeURIComponent(text(value)).replaceAll('%20', '+'),

  default: (otherwise, value) => (isEmptyValue(value) ? otherwise : value),
  empty: (value) => isEmptyValue(value),
  coalesce: (...values) => values.find((value) => !isEmptyValue(value)),
  all: (...values) => values.every((value) => !isEmptyValue(value)),
  any: (...values) => values.some((value) => !isEmptyValue(value)),
  ternary: (yes, no, value) => (value === true ? yes : no),
  fail: (message) => fail(text(message)),

  upper: (value) => text(value).toUpperCase(),
  lower: (value) => text(value).toLowerCase(),
  title: (value) => upperFirst(text(value)),
  untitle: (value) => text(value).replace(/(^|\s)(\p{L})/gu, (both) => both.toLowerCase()),
  trim: (value) => text(value).trim(),
  trimAll: (cut, value) => trimmed(text(value), text(cut)),
  trimPrefix: (cut, value) =>
    text(value).startsWith(text(cut)) ? text(value).slice(text(cut).length) : text(value),
  trimSuffix: (cut, value) =>
    text(cut) !== '' && text(value).endsWith(text(cut))
      ? text(value).slice(0, -text(cut).length)
      : text(value),
  trunc(count, value) {
    const length = Number(whole(count));
    const bytes = text(value);
    if (length < 0 && bytes.length + length > 0) return bytes.slice(length);
    return length >= 0 && bytes.length > length ? bytes.slice(0, length) : bytes;
  },
  abbrev(count, value) {
    const length = Number(whole(count));
    const all = text(value);
    return length < 4 || all.length <= length ? all : `${all.slice(0, length - 3)}...`;
  },
  substr(from, to, value) {
    const all = text(value);
    const end = Number(whole(to));
    return all.slice(
      Math.max(0, Number(whole(from))),
      end < 0 || end > all.length ? undefined : end,
    );
  },
  nospace: (value) => text(value).replace(/\s+/g, ''),
  repeat: (count, value) =>
    Number(whole(count)) * text(value).length > textBytesMax
      ? fail('the text is too long')
      : text(value).repeat(Math.max(0, Number(whole(count)))),
  replace: (from, to, value) => short(text(value).replaceAll(text(from), text(to))),
  contains: (part, value) => text(value).includes(text(part)),
  hasPrefix: (part, value) => text(value).startsWith(text(part)),
  hasSuffix: (part, value) => text(value).endsWith(text(part)),
  quote: (...values) => values.map((value) => JSON.stringify(text(value))).join(' '),
  squote: (...values) => values.map((value) => `'${text(value)}'`).join(' '),
  cat: (...values) => values.map(text).join(' '),
  indent: (count, value) => short(indented(whole(count), text(value))),
  nindent: (count, value) => short(`\n${indented(whole(count), text(value))}`),
  plural: (one, many, count) => (Number(count) === 1 ? one : many),
  join: (by, values) => list(values).map(text).join(text(by)),
  splitList: (by, value) => text(value).split(text(by)),
  split: (by, value) =>
    Object.fromEntries(
      text(value)
        .split(text(by))
        .map((part, at) => [`_${at}`, part]),
    ),
  toString: (value: TemplateValue) => text(value),
  toStrings: (values) => list(values).map(text),

  list: (...values) => values,
  first: (values) => list(values)[0],
  last: (values) => list(values).at(-1),
  rest: (values) => list(values).slice(1),
  initial: (values) => list(values).slice(0, -1),
  reverse: (values) => list(values).toReversed(),
  uniq: (values) => [...new Map(list(values).map((value) => [text(value), value])).values()],
  compact: (values) => list(values).filter((value) => !isEmptyValue(value)),
  has: (wanted, values) => list(values).some((value) => text(value) === text(wanted)),
  without: (values, ...others) =>
    list(values).filter((value) => !others.some((other) => text(other) === text(value))),
  append: (values, value) => [...list(values), value],
  concat: (...values) => values.flatMap(list),
  sortAlpha: (values) => list(values).map(text).toSorted(),
  dict: (...values) => {
    const made: Record<string, TemplateValue> = {};
    for (let at = 0; at < values.length; at += 2) made[text(values[at])] = values[at + 1] ?? '';
    return made;
  },
  get: (from, key) => record(from)[text(key)] ?? '',
  hasKey: (from, key) => Object.hasOwn(record(from), text(key)),
  keys: (...from) => from.flatMap((each) => Object.keys(record(each)).toSorted()),
  values: (from) => Object.values(record(from)),

  toJson: (value) => JSON.stringify(plain(value)),
  toPrettyJson: (value) => JSON.stringify(plain(value), undefined, 2),
  fromJson: (value) => parsed(text(value)),
  b64enc: (value) => Buffer.from(text(value)).toString('base64'),
  b64dec: (value) => Buffer.from(text(value), 'base64').toString('utf8'),

  int: (value) => whole(value),
  int64: (value) => whole(value),
  float64: (value) => Number(value),
  add: (...values) => values.reduce<bigint>((sum, value) => sum + whole(value), 0n),
  add1: (value) => whole(value) + 1n,
  sub: (first, second) => whole(first) - whole(second),
  mul: (...values) =>
    values.reduce<bigint>((product, value) => BigInt.asIntN(64, product * whole(value)), 1n),
  div: (first, second) =>
    whole(second) === 0n ? fail('integer divide by zero') : whole(first) / whole(second),
  mod: (first, second) =>
    whole(second) === 0n ? fail('integer divide by zero') : whole(first) % whole(second),
  max: (...values) => values.map(whole).reduce((a, b) => (a > b ? a : b)),
  min: (...values) => values.map(whole).reduce((a, b) => (a < b ? a : b)),
  floor: (value) => Math.floor(Number(value)),
  ceil: (value) => Math.ceil(Number(value)),
  round: (value, digits) => Number(Number(value).toFixed(Math.min(20, Number(digits ?? 0)))),
};

export function isTemplateFunction(name: string): boolean {
  return Object.hasOwn(functions, name);
}

export function callTemplateFunction(name: string, values: TemplateValue[]): TemplateValue {
  const called = Object.hasOwn(functions, name) ? functions[name] : undefined;
  return called === undefined ? fail(`function "${name}" not defined`) : called(...values);
}

function indexed(value: TemplateValue, key: TemplateValue): TemplateValue {
  if (Array.isArray(value)) {
    const at = Number(key);
    if (typeof key === 'string' || at < 0 || at >= value.length)
      return fail(`index out of range: ${text(key)}`);
    return value[at];
  }
  if (typeof value === 'object' && value !== null) {
    return Object.hasOwn(value, text(key)) ? value[text(key)] : undefined;
  }
  return fail('index of untyped nil');
}

function indented(count: bigint, value: string): string {
  const pad = ' '.repeat(Math.min(1_000, Math.max(0, Number(count))));
  return pad + value.replaceAll('\n', `\n${pad}`);
}

function trimmed(value: string, cut: string): string {
  const letters = chars(value);
  while (letters.length > 0 && cut.includes(letters[0] ?? '')) letters.shift();
  while (letters.length > 0 && cut.includes(letters.at(-1) ?? '')) letters.pop();
  return letters.join('');
}

function plain(value: TemplateValue): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}

function parsed(json: string): TemplateValue {
  try {
    return JSON.parse(json) as TemplateValue;
  } catch {
    return undefined;
  }
}

function printf(format: string, values: readonly TemplateValue[]): string {
  // A width of a million characters would be a small template and a large message.
  if (/%[-+# 0-9.*[\]]*(?:\*|\d{4})/.test(format.replaceAll('%%', ''))) {
    return fail('printf width or precision too large');
  }
  let at = 0;
  return format.replace(
    /%([-+ 0#]*)(\d*)(?:\.(\d+))?([a-zA-Z%])/g,
    (whole_, flags: string, width: string, precision: string | undefined, verb: string) => {
      if (verb === '%') return '%';
      if (at >= values.length) return `%!${verb}(MISSING)`;
      const value = values[at];
      at += 1;
      const made = formatted(verb, value, precision) ?? `%!${verb}(${whole_})`;
      const length = Number(width);
      if (flags.includes('-')) return made.padEnd(length);
      return made.padStart(length, flags.includes('0') ? '0' : ' ');
    },
  );
}

function formatted(
  verb: string,
  value: TemplateValue,
  precision: string | undefined,
): string | undefined {
  switch (verb) {
    case 's':
    case 'v':
      return precision === undefined
        ? shownValue(value)
        : shownValue(value).slice(0, Number(precision));
    case 'd':
      return typeof value === 'bigint' ? String(value) : `%!d(float64=${shownValue(value)})`;
    case 'f':
      return typeof value === 'number'
        ? value.toFixed(Math.min(100, Number(precision ?? 6)))
        : undefined;
    case 'q':
      return JSON.stringify(text(value));
    case 't':
      return String(value === true);
    case 'x':
      return typeof value === 'bigint'
        ? value.toString(16)
        : Buffer.from(text(value)).toString('hex');
    case 'g':
      return shownValue(value);
    default:
      return undefined;
  }
}
