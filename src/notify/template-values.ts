// The values of templates: what JSON has, and Go's whole numbers beside its floating ones.

import { TemplateProblem } from './template-syntax.ts';

export type TemplateValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | TemplateValue[]
  | { [name: string]: TemplateValue };

/** As Go prints it. */
export function shownValue(value: TemplateValue): string {
  if (value === undefined || value === null) return '<no value>';
  if (typeof value === 'number') return shownNumber(value);
  if (Array.isArray(value)) return `[${value.map(inner).join(' ')}]`;
  if (typeof value !== 'object') return String(value);
  const entries = Object.keys(value)
    .toSorted()
    .map((key) => `${key}:${inner(value[key])}`);
  return `map[${entries.join(' ')}]`;
}

function inner(value: TemplateValue): string {
  return value === undefined || value === null ? '<nil>' : shownValue(value);
}

function shownNumber(value: number): string {
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-4 || size >= 1e21) ? value.toExponential() : String(value);
  return text.replace(/e([-+])(\d)$/, 'e$10$2');
}

export function isEmptyValue(value: TemplateValue): boolean {
  if (value === undefined || value === null || value === false || value === '') return true;
  if (value === 0 || value === 0n) return true;
  return typeof value === 'object' && lengthOf(value) === 0;
}

export function lengthOf(value: TemplateValue): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (Array.isArray(value)) return value.length;
  if (typeof value === 'object' && value !== null) return Object.keys(value).length;
  throw new TemplateProblem('failed', `len of type ${typeof value}`);
}

/** Go compares whole numbers with whole ones only. */
export function equalValues(first: TemplateValue, second: TemplateValue): boolean {
  const nothing = (value: TemplateValue): boolean => value === undefined || value === null;
  if (nothing(first) || nothing(second)) return nothing(first) && nothing(second);
  if (typeof first !== typeof second || typeof first === 'object') throw incomparable();
  return first === second;
}

export function compareValues(first: TemplateValue, second: TemplateValue): number {
  const isOrdered = ['string', 'number', 'bigint'].includes(typeof first);
  if (!isOrdered || typeof first !== typeof second) throw incomparable();
  const [a, b] = [first as string, second as string];
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function incomparable(): TemplateProblem {
  return new TemplateProblem('failed', 'incompatible types for comparison');
}
