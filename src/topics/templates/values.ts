// The values of templates: JSON values, with Go's distinction of whole and floating-point numbers.

import { localTimeZone } from '../../foundation/time-zone.ts';
import { formatGoTime } from './go-time.ts';
import { TemplateProblem } from './syntax.ts';

const goTimeLayout = '2006-01-02 15:04:05.999999999 -0700 MST';

/** Go's `time.Time`. */
export class TemplateTime {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
}

export type TemplateValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | TemplateTime
  | TemplateValue[]
  | { [name: string]: TemplateValue };

export type TemplateDict = Record<string, TemplateValue>;

/** Go's `nil`: JSON's null, or a missing field. */
export function isNil(value: TemplateValue): value is null | undefined {
  return value === undefined || value === null;
}

export function isDict(value: TemplateValue): value is TemplateDict {
  return typeof value === 'object' && !isNil(value) && !Array.isArray(value) && !isTime(value);
}

export function isTime(value: TemplateValue): value is TemplateTime {
  return value instanceof TemplateTime;
}

/** Undefined if the dictionary does not have the field. */
export function ownField(from: TemplateDict, name: string): TemplateValue {
  return Object.hasOwn(from, name) ? from[name] : undefined;
}

/** Formats a value as Go prints it. */
export function shownValue(value: TemplateValue): string {
  if (isNil(value)) return '<no value>';
  if (typeof value === 'number') return shownNumber(value);
  if (Array.isArray(value)) return `[${value.map(inner).join(' ')}]`;
  if (isTime(value)) return formatGoTime(value.ms, goTimeLayout, localTimeZone());
  if (!isDict(value)) return String(value);
  const entries = Object.keys(value)
    .toSorted()
    .map((key) => `${key}:${inner(value[key])}`);
  return `map[${entries.join(' ')}]`;
}

function inner(value: TemplateValue): string {
  return isNil(value) ? '<nil>' : shownValue(value);
}

function shownNumber(value: number): string {
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-4 || size >= 1e21) ? value.toExponential() : String(value);
  return text.replace(/e([-+])(\d)$/, 'e$10$2');
}

export function isEmptyValue(value: TemplateValue): boolean {
  if (isNil(value) || value === false || value === '' || value === 0 || value === 0n) return true;
  return (Array.isArray(value) || isDict(value)) && lengthOf(value) === 0;
}

export function lengthOf(value: TemplateValue): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (Array.isArray(value)) return value.length;
  if (isDict(value)) return Object.keys(value).length;
  throw new TemplateProblem('failed', `len of type ${typeOfValue(value)}`);
}

/** Go compares integers with integers only. */
export function equalValues(first: TemplateValue, second: TemplateValue): boolean {
  if (isNil(first) || isNil(second)) return isNil(first) && isNil(second);
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

/** The name of the type in Go. */
export function typeOfValue(value: TemplateValue): string {
  if (isNil(value)) return '<nil>';
  if (isTime(value)) return 'time.Time';
  if (Array.isArray(value)) return '[]interface {}';
  const names: Readonly<Record<string, string>> = {
    string: 'string',
    number: 'float64',
    bigint: 'int',
    boolean: 'bool',
  };
  return names[typeof value] ?? 'map[string]interface {}';
}

export function kindOfValue(value: TemplateValue): string {
  const type = typeOfValue(value);
  const kinds: Readonly<Record<string, string>> = {
    '<nil>': 'invalid',
    'time.Time': 'struct',
    '[]interface {}': 'slice',
    'map[string]interface {}': 'map',
  };
  return kinds[type] ?? type;
}

/** A text that is the same for two values if, and only if, they are deeply equal. */
export function deepKey(value: TemplateValue): string {
  if (isNil(value)) return 'n';
  if (isTime(value)) return `t${value.ms}`;
  if (Array.isArray(value)) return `[${value.map(deepKey).join(',')}]`;
  if (typeof value === 'string') return JSON.stringify(value);
  if (!isDict(value)) return `${typeof value} ${value}`;
  const entries = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${deepKey(value[key])}`);
  return `{${entries.join(',')}}`;
}

/** JSON as Go writes it: sorted keys, and characters of HTML escaped. */
export function goJson(
  value: TemplateValue,
  { isForHtml, indent }: { readonly isForHtml: boolean; readonly indent?: number },
): string {
  const json = JSON.stringify(plain(value), undefined, indent);
  const isUnsafe = isForHtml ? /[<>&\u2028\u2029]/g : /[\u2028\u2029]/g;
  return json.replaceAll(
    isUnsafe,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function plain(value: TemplateValue): unknown {
  if (value === undefined) return null;
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(plain);
  if (isTime(value)) {
    return formatGoTime(value.ms, '2006-01-02T15:04:05.999999999Z07:00', localTimeZone());
  }
  if (!isDict(value)) return value;
  const keys = Object.keys(value).toSorted();
  return Object.fromEntries(keys.map((key) => [key, plain(value[key])]));
}
