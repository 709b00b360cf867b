// Functions of templates over lists and dictionaries.

import {
  dict,
  failed,
  functionLimits as limits,
  int,
  list,
  prefixed,
  shown,
  text,
  whole,
  type TemplateFunctions,
} from './arguments.ts';
import {
  deepKey,
  isEmptyValue,
  isNil,
  ownField,
  type TemplateDict,
  type TemplateValue,
} from './values.ts';

/** Functions with a `must` variant. sprig's own variants differ in how they fail, which publishers cannot see. */
const strict: TemplateFunctions = {
  append: (values, value) => [...list(values), value],
  push: (values, value) => [...list(values), value],
  prepend: (values, value) => [value, ...list(values)],
  first: (values) => list(values)[0],
  last: (values) => list(values).at(-1),
  rest: (values) => list(values).slice(1),
  initial: (values) => list(values).slice(0, -1),
  reverse: (values) => list(values).toReversed(),
  compact: (values) => list(values).filter((value) => !isEmptyValue(value)),
  uniq: (values) => unique(list(values)),
  has: (wanted, values) => !isNil(values) && keysOf(list(values)).has(deepKey(wanted)),
  chunk: (size, values) => chunks(int(size), list(values)),
};

const strictOfMany: TemplateFunctions = {
  without: (values, ...others) => without(list(values), keysOf(others)),
  slice: (values, ...range) => sliced(list(values), range),
};

export const listFunctions: TemplateFunctions = {
  ...strict,
  ...prefixed('must', strict),
  get: (from, key) => ownField(dict(from), text(key)) ?? '',
  // Its cost rejects a value that contains the dictionary, which would make a cycle.
  set: (into, key, value) => setField(dict(into), text(key), value),
  unset: (from, key) => {
    delete dict(from)[text(key)];
    return from;
  },
  hasKey: (from, key) => Object.hasOwn(dict(from), text(key)),
  values: (from) => Object.values(dict(from)),
};

function setField(into: TemplateDict, key: string, value: TemplateValue): TemplateDict {
  // An assignment would change the prototype if the key is `__proto__`.
  return Object.defineProperty(into, key, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
}

/** Functions that take any number of arguments. */
export const listsOfMany: TemplateFunctions = {
  ...strictOfMany,
  ...prefixed('must', strictOfMany),
  list: (...values) => values,
  tuple: (...values) => values,
  concat: (...values) => values.flatMap(list),
  dict: (...values) => dictOf(values),
  keys: (...from) => from.flatMap((each) => Object.keys(dict(each)).toSorted()),
  pluck: (key, ...from) =>
    from.map(dict).flatMap((each) => (Object.hasOwn(each, text(key)) ? [each[text(key)]] : [])),
  pick: (from, ...keys) => only(dict(from), keys, true),
  omit: (from, ...keys) => only(dict(from), keys, false),
  dig: (...values) => dug(values),
};

const keysOf = (values: readonly TemplateValue[]): ReadonlySet<string> =>
  new Set(values.map(deepKey));

function without(values: TemplateValue[], keys: ReadonlySet<string>): TemplateValue[] {
  return values.filter((value) => !keys.has(deepKey(value)));
}

function unique(values: readonly TemplateValue[]): TemplateValue[] {
  if (values.length > limits.listMax) return failed('the list is too long');
  const found = new Map<string, TemplateValue>();
  for (const value of values) {
    const key = deepKey(value);
    if (!found.has(key)) found.set(key, value);
  }
  return [...found.values()];
}

function chunks(size: number, values: TemplateValue[]): TemplateValue[] {
  if (size < 1 || values.length / size > limits.listMax) {
    return failed(`number of chunks exceeds maximum limit of ${limits.listMax}`);
  }
  return Array.from({ length: Math.ceil(values.length / size) }, (_, at) =>
    values.slice(at * size, (at + 1) * size),
  );
}

function sliced(values: TemplateValue[], range: readonly TemplateValue[]): TemplateValue {
  if (values.length === 0) return undefined;
  const from = range.length > 0 ? Number(whole(range[0])) : 0;
  const to = range.length > 1 ? Number(whole(range[1])) : values.length;
  if (from < 0 || to < from || to > values.length) return failed('slice index out of bounds');
  return values.slice(from, to);
}

function dictOf(values: readonly TemplateValue[]): TemplateValue {
  const entries: [string, TemplateValue][] = [];
  for (let at = 0; at < values.length; at += 2) {
    entries.push([shown(values[at]), at + 1 < values.length ? values[at + 1] : '']);
  }
  return Object.fromEntries(entries);
}

function only(from: TemplateDict, keys: TemplateValue[], isListed: boolean): TemplateValue {
  const listed = new Set(keys.map(text));
  return Object.fromEntries(Object.entries(from).filter(([key]) => listed.has(key) === isListed));
}

/** The value at a path of keys, or the default, which is the argument before the dictionary. */
function dug(values: readonly TemplateValue[]): TemplateValue {
  if (values.length < 3) return failed('dig needs at least three arguments');
  const keys = values.slice(0, -2).map(text);
  let from = dict(values.at(-1));
  for (const [at, key] of keys.entries()) {
    if (!Object.hasOwn(from, key)) return values.at(-2);
    if (at === keys.length - 1) return from[key];
    from = dict(from[key]);
  }
  return undefined;
}
