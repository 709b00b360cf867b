// A line of the log: JSON for machines, text for people. Both are bounded.

import { documentFields } from './document-fields.ts';
import type { Redaction } from './redact.ts';
import { toLogValue, type LogValue, type LogValueLimits } from './to-log-value.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogRecord {
  readonly timestamp: string;
  readonly level: LogLevel;
  readonly msg: string;
  readonly fields: object;
}

export interface FormatOptions {
  readonly redaction: Redaction;
  /** With every line: `app`, `env`, `version`. */
  readonly common: object;
  readonly lineBytesMax: number;
}

export const logLimits = {
  /** Under what most collectors of logs cut a line in two. */
  lineBytesMax: 16_384,
  /** What may wait for a slow reader. */
  bufferBytesMax: 4_194_304,
} as const;

const whole: LogValueLimits = {
  depthMax: 8,
  entriesMax: 64,
  textCharsMax: 4_096,
  nodesMax: 1_000,
};
const short: LogValueLimits = { depthMax: 3, entriesMax: 24, textCharsMax: 200, nodesMax: 100 };
/** What a line is found by. */
const essential = [
  'correlationId',
  'tenantId',
  'tenant',
  'userId',
  'source',
  'context',
  'operation',
  'operationId',
  'phase',
  'eventId',
];

export function formatJson(record: LogRecord, options: FormatOptions): string {
  const { timestamp, level, msg } = record;
  const reserved = { timestamp, level, msg: msg.slice(0, 1_000) };
  const line = (limits: LogValueLimits, note: object, only?: readonly string[]): string => {
    const fields = fieldsOf(record, options, limits);
    const found = { ...fields, ...documentFields(fields) };
    const kept = only === undefined ? found : pick(found, only);
    // First by place, last by right: no field of the caller's takes their names.
    return `${JSON.stringify({ ...reserved, ...kept, ...note, ...reserved })}\n`;
  };
  const fits = (text: string): boolean => Buffer.byteLength(text) <= options.lineBytesMax;
  const full = line(whole, {});
  if (fits(full)) return full;
  const note = { truncated: true };
  const less = line(short, note);
  return fits(less) ? less : line(short, note, essential);
}

export function formatText(
  record: LogRecord,
  options: FormatOptions & { readonly hasColours: boolean },
): string {
  const { timestamp, level, msg } = record;
  const fields = fieldsOf(record, { ...options, common: {} }, whole);
  const colour = options.hasColours ? colours[level] : (text: string) => text;
  const stacks: string[] = [];
  const words = Object.entries(fields).map(([key, value]) => {
    const stack = stackOf(value);
    if (stack !== undefined) stacks.push(...stack);
    return `${key}=${wordOf(stack === undefined ? value : messageOf(value))}`;
  });
  const head = `${timestamp.slice(11, 23)} ${colour(level.toUpperCase().padEnd(5))} ${visible(msg)}`;
  const lines = [[head, ...words].join(' '), ...stacks.map((each) => `    ${visible(each)}`)];
  const text = lines.join('\n');
  const { lineBytesMax } = options;
  return `${text.length > lineBytesMax ? `${text.slice(0, lineBytesMax)}…` : text}\n`;
}

const paint =
  (code: number) =>
  (text: string): string =>
    `\u001b[${code}m${text}\u001b[0m`;

const colours: Readonly<Record<LogLevel, (text: string) => string>> = {
  debug: paint(2),
  info: paint(36),
  warn: paint(33),
  error: paint(31),
};

type Fields = Readonly<Record<string, LogValue>>;

function fieldsOf(
  { fields }: LogRecord,
  { common, redaction }: FormatOptions,
  limits: LogValueLimits,
): Fields {
  const value = toLogValue(fields, limits, redaction);
  const isPlain = typeof value === 'object' && value !== null && !Array.isArray(value);
  // An error that was logged by itself, or nothing that has fields.
  if (fields instanceof Error || !isPlain) return { ...common, err: value };
  return { ...common, ...(value as Fields) };
}

function pick(fields: Fields, keys: readonly string[]): Fields {
  const found = keys.flatMap((key) => {
    const value = fields[key];
    return value === undefined ? [] : [[key, value] as const];
  });
  return Object.fromEntries(found);
}

function stackOf(value: LogValue, depth = 0): string[] | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { stack, cause } = value as Fields;
  if (typeof stack !== 'string') return undefined;
  const below = depth < 5 && cause !== undefined ? stackOf(cause, depth + 1) : undefined;
  return [...stack.split('\n'), ...(below === undefined ? [] : ['caused by:', ...below])];
}

function messageOf(value: LogValue): LogValue {
  const { code, message = '' } = value as Fields;
  return typeof code === 'string' && typeof message === 'string' ? `${code}: ${message}` : message;
}

function wordOf(value: LogValue): string {
  const isWord = typeof value === 'string' && /^[\w.:@/+-]+$/.test(value);
  return visible(isWord ? value : JSON.stringify(value));
}

/** Nothing that a terminal takes for an instruction. */
function visible(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '�');
}
