// Checks the arguments of template functions: each parameter has a type, as in Go.

import { TemplateProblem } from './syntax.ts';
import {
  isDict,
  isNil,
  isTime,
  shownValue,
  typeOfValue,
  type TemplateDict,
  type TemplateTime,
  type TemplateValue,
} from './values.ts';

export type TemplateFunction = (...values: TemplateValue[]) => TemplateValue;
export type TemplateFunctions = Readonly<Record<string, TemplateFunction>>;

/** Copies functions under a name with a prefix: `first` becomes `mustFirst`. */
export function prefixed(prefix: string, functions: TemplateFunctions): TemplateFunctions {
  return Object.fromEntries(
    Object.entries(functions).map(([name, each]) => [
      `${prefix}${name.slice(0, 1).toUpperCase()}${name.slice(1)}`,
      each,
    ]),
  );
}

/** ntfy's limits. */
export const functionLimits = {
  loopsMax: 10_000,
  textCharsMax: 100_000,
  listMax: 10_000,
  indentMax: 100,
} as const;

export function failed(message: string): never {
  throw new TemplateProblem('failed', message);
}

function expected(type: string, value: TemplateValue): never {
  if (isNil(value)) return failed(`invalid value; expected ${type}`);
  return failed(`wrong type for value; expected ${type}; got ${typeOfValue(value)}`);
}

export const text = (value: TemplateValue): string =>
  typeof value === 'string' ? value : expected('string', value);

export const integer = (value: TemplateValue): bigint =>
  typeof value === 'bigint' ? value : expected('int', value);

export const int = (value: TemplateValue): number => Number(integer(value));

export const bool = (value: TemplateValue): boolean =>
  typeof value === 'boolean' ? value : expected('bool', value);

export const time = (value: TemplateValue): TemplateTime =>
  isTime(value) ? value : expected('time.Time', value);

export const list = (value: TemplateValue): TemplateValue[] =>
  Array.isArray(value) ? value : failed(`cannot use type ${typeOfValue(value)} as a list`);

export const dict = (value: TemplateValue): TemplateDict =>
  isDict(value) ? value : expected('map[string]interface {}', value);

/** Any value as text. */
export const shown = (value: TemplateValue): string => (isNil(value) ? '<nil>' : shownValue(value));

/** The items of a list as texts, without nil; any other value as one text. */
export function texts(value: TemplateValue): string[] {
  const values = Array.isArray(value) ? value : [value];
  return values.filter((each) => !isNil(each)).map(shown);
}

/** Converts any value to an integer, as sprig does. */
export function whole(value: TemplateValue): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'boolean') return value ? 1n : 0n;
  if (typeof value === 'string') return /^[-+]?\d{1,18}$/.test(value) ? BigInt(value) : 0n;
  const isWhole = typeof value === 'number' && Number.isFinite(value);
  return isWhole ? BigInt.asIntN(64, BigInt(Math.trunc(value))) : 0n;
}

export function float(value: TemplateValue): number {
  if (typeof value === 'string') {
    return /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?$/i.test(value) ? Number(value) : 0;
  }
  if (typeof value === 'number') return value;
  return typeof value === 'bigint' || typeof value === 'boolean' ? Number(value) : 0;
}

export function bounded(result: string): string {
  return result.length > 1_048_576 ? failed('the text is too long') : result;
}
