// What functions of templates take: each parameter has a type, as in Go, and what does not fit fails.

import { TemplateProblem } from './template-syntax.ts';
import { TemplateTime, shownValue, typeOfValue, type TemplateValue } from './template-values.ts';

export type TemplateFunction = (...values: TemplateValue[]) => TemplateValue;
export type TemplateFunctions = Readonly<Record<string, TemplateFunction>>;

/** ntfy's own bounds. */
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
  if (value === undefined || value === null) return failed(`invalid value; expected ${type}`);
  return failed(`wrong type for value; expected ${type}; got ${typeOfValue(value)}`);
}

export const text = (value: TemplateValue): string =>
  typeof value === 'string' ? value : expected('string', value);

export const int = (value: TemplateValue): number =>
  typeof value === 'bigint' ? Number(value) : expected('int', value);

export const bool = (value: TemplateValue): boolean =>
  typeof value === 'boolean' ? value : expected('bool', value);

export const time = (value: TemplateValue): TemplateTime =>
  value instanceof TemplateTime ? value : expected('time.Time', value);

export const list = (value: TemplateValue): TemplateValue[] =>
  Array.isArray(value) ? value : failed(`cannot use type ${typeOfValue(value)} as a list`);

export const dict = (value: TemplateValue): Record<string, TemplateValue> =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof TemplateTime)
    ? value
    : expected('map[string]interface {}', value);

/** Whatever it is, as a text. */
export const shown = (value: TemplateValue): string =>
  value === undefined || value === null ? '<nil>' : shownValue(value);

/** A list's own texts, without what is nothing; of anything else, the one text. */
export function texts(value: TemplateValue): string[] {
  if (value === undefined || value === null) return [];
  const values = Array.isArray(value) ? value : [value];
  return values.filter((each) => each !== undefined && each !== null).map(shown);
}

/** As Go's sprig makes whole numbers of anything. */
export function whole(value: TemplateValue): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'boolean') return value ? 1n : 0n;
  if (typeof value === 'string') return /^[-+]?\d{1,18}$/.test(value) ? BigInt(value) : 0n;
  return typeof value === 'number' && Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n;
}

export function float(value: TemplateValue): number {
  if (typeof value === 'string') {
    return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i.test(value) ? Number(value) : 0;
  }
  if (typeof value === 'number') return value;
  return typeof value === 'bigint' || typeof value === 'boolean' ? Number(value) : 0;
}

/** A text that would be too long is not made. */
export function bounded(made: string): string {
  return made.length > 1_048_576 ? failed('the text is too long') : made;
}
