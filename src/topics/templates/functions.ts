// All functions of templates: those of Go, and those that ntfy took from sprig.

import {
  bool,
  bounded,
  failed,
  prefixed,
  shown,
  text,
  type TemplateFunction,
  type TemplateFunctions,
} from './arguments.ts';
import { createTemplateBudget, units, type TemplateBudget } from './budget.ts';
import { templateCosts } from './costs.ts';
import { dateFunctions } from './dates.ts';
import { listFunctions, listsOfMany } from './lists.ts';
import { numberFunctions, numbersOfMany } from './numbers.ts';
import { patternFunctions } from './patterns.ts';
import { urlFunctions } from './urls.ts';
import { textFunctions, textsOfMany } from './texts.ts';
import {
  compareValues,
  deepKey,
  equalValues,
  goJson,
  isDict,
  isEmptyValue,
  kindOfValue,
  lengthOf,
  ownField,
  shownValue,
  typeOfValue,
  type TemplateValue,
} from './values.ts';

const parsed = (value: TemplateValue, orElse: (error: unknown) => TemplateValue): TemplateValue => {
  try {
    return JSON.parse(text(value)) as TemplateValue;
  } catch (error) {
    return orElse(error);
  }
};

const jsonFunctions: TemplateFunctions = {
  toJSON: (value) => goJson(value, { isForHtml: true }),
  toPrettyJSON: (value) => goJson(value, { isForHtml: true, indent: 2 }),
  toRawJSON: (value) => goJson(value, { isForHtml: false }),
};

/** Functions with a fixed number of arguments: the number of their parameters. */
const fixed: TemplateFunctions = {
  not: (value) => isEmptyValue(value),
  ne: (first, second) => !equalValues(first, second),
  lt: (first, second) => compareValues(first, second) < 0,
  le: (first, second) => compareValues(first, second) <= 0,
  gt: (first, second) => compareValues(first, second) > 0,
  ge: (first, second) => compareValues(first, second) >= 0,
  len: (value) => BigInt(lengthOf(value)),

  empty: (value) => isEmptyValue(value),
  ternary: (yes, no, value) => (bool(value) ? yes : no),
  fail: (message) => failed(text(message)),
  typeOf: (value) => typeOfValue(value),
  typeIs: (type, value) => text(type) === typeOfValue(value),
  typeIsLike: (type, value) => [text(type), `*${text(type)}`].includes(typeOfValue(value)),
  kindOf: (value) => kindOfValue(value),
  kindIs: (kind, value) => text(kind) === kindOfValue(value),
  deepEqual: (first, second) => deepKey(first) === deepKey(second),

  fromJSON: (value) => parsed(value, () => undefined),
  mustFromJSON: (value) => parsed(value, (error) => failed(String(error))),
  ...jsonFunctions,
  ...prefixed('must', jsonFunctions),

  ...textFunctions,
  ...listFunctions,
  ...numberFunctions,
  ...dateFunctions,
  ...urlFunctions,
};

/** Functions that take any number of arguments after their parameters. */
const variadic: TemplateFunctions = {
  and: (first, ...values) =>
    [first, ...values].find((value) => isEmptyValue(value)) ?? values.at(-1) ?? first,
  or: (first, ...values) =>
    [first, ...values].find((value) => !isEmptyValue(value)) ?? values.at(-1) ?? first,
  eq: (first, second, ...others) => [second, ...others].some((other) => equalValues(first, other)),
  index: (value, ...keys) => keys.reduce<TemplateValue>(indexed, value),
  print: (...values) => printed(values),
  println: (...values) => `${values.map(shown).join(' ')}\n`,
  printf: (format, ...values) => printf(text(format), values),
  html: (...values) =>
    values
      .map(shown)
      .join('')
      .replaceAll(/[&<>"']/g, (letter) => htmlLetters[letter] ?? letter),
  js: (...values) => scriptText(values.map(shown).join('')),
  urlquery: (...values) =>
    encodeURIComponent(values.map(shown).join('').toWellFormed())
      .replaceAll('%20', '+')
      .replaceAll(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`),

  default: (otherwise, ...values) => (isEmptyValue(values[0]) ? otherwise : values[0]),
  coalesce: (...values) => values.find((value) => !isEmptyValue(value)),
  all: (...values) => values.every((value) => !isEmptyValue(value)),
  any: (...values) => values.some((value) => !isEmptyValue(value)),

  ...textsOfMany,
  ...listsOfMany,
  ...numbersOfMany,
};

const htmlLetters: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
};

/** Puts a space between two values of which neither is a text, as Go does. */
function printed(values: readonly TemplateValue[]): string {
  return values
    .map((value, at) => {
      const isBare = at > 0 && ![value, values[at - 1]].some((each) => typeof each === 'string');
      return `${isBare ? ' ' : ''}${shown(value)}`;
    })
    .join('');
}

const patternNames: ReadonlySet<string> = new Set(
  Object.keys(patternFunctions(createTemplateBudget())),
);

export const templateFunctionNames: readonly string[] = [
  ...Object.keys(fixed),
  ...patternNames,
  ...Object.keys(variadic),
].toSorted();

export function isTemplateFunction(name: string): boolean {
  return patternNames.has(name) || Object.hasOwn(fixed, name) || Object.hasOwn(variadic, name);
}

/** Charges the budget before the function runs. */
export function callTemplateFunction(
  budget: TemplateBudget,
  name: string,
  values: TemplateValue[],
): TemplateValue {
  const table = patternNames.has(name) ? patternFunctions(budget) : fixed;
  const isFixed = Object.hasOwn(table, name);
  const called: TemplateFunction | undefined = isFixed ? table[name] : variadic[name];
  const cost = templateCosts.get(name);
  if (called === undefined || cost === undefined) return failed(`function "${name}" not defined`);
  const isCounted = isFixed ? values.length === called.length : values.length >= called.length;
  if (isCounted) {
    budget.charge(units.call + values.length);
    cost(budget, values);
    return called(...values);
  }
  const wanted = `${isFixed ? '' : 'at least '}${called.length}`;
  return failed(`wrong number of args for ${name}: want ${wanted} got ${values.length}`);
}

function indexed(value: TemplateValue, key: TemplateValue): TemplateValue {
  if (Array.isArray(value)) {
    const at = typeof key === 'bigint' ? Number(key) : failed('cannot index slice with this');
    if (at < 0 || at >= value.length) return failed(`index out of range: ${at}`);
    return value[at];
  }
  return isDict(value) ? ownField(value, text(key)) : failed('index of untyped nil');
}

function scriptText(value: string): string {
  // eslint-disable-next-line no-control-regex -- Go escapes these.
  return value.replaceAll(/[\\'"<>&=\u0000-\u001f]/g, (letter) => {
    if (letter === '\\' || letter === "'" || letter === '"') return `\\${letter}`;
    return `\\u${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
  });
}

function printf(format: string, values: readonly TemplateValue[]): string {
  // A large width would make a large message of a small template.
  if (/%[-+# 0-9.*[\]]*(?:\*|\d{4})/.test(format.replaceAll('%%', ''))) {
    return failed('printf width or precision too large');
  }
  let at = 0;
  const result = format.replace(
    /%([-+ 0#]*)(\d*)(?:\.(\d+))?([a-zA-Z%])/g,
    (whole, flags: string, width: string, precision: string | undefined, verb: string) => {
      if (verb === '%') return '%';
      if (at >= values.length) return `%!${verb}(MISSING)`;
      const value = values[at];
      at += 1;
      const one = formatted(verb, value, precision) ?? `%!${verb}(${whole})`;
      const length = Number(width);
      if (flags.includes('-')) return one.padEnd(length);
      return one.padStart(length, flags.includes('0') ? '0' : ' ');
    },
  );
  return bounded(result);
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
      return JSON.stringify(shown(value));
    case 't':
      return String(value === true);
    case 'x':
      return typeof value === 'bigint'
        ? value.toString(16)
        : Buffer.from(shown(value)).toString('hex');
    case 'g':
      return shownValue(value);
    default:
      return undefined;
  }
}
