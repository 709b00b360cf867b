// Task types from YAML. Errors contain the field and the line.

import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import { isSubjectToken } from '../contracts/subject-tokens.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { parseCron } from './cron.ts';
import type { RateRule } from './task-engine.ts';
import { durationMs, invalid, checkInteger } from './rules/check-task.ts';
import { taskLimits as limits } from './task-limits.ts';
import {
  taskBackoffDefault,
  taskType,
  type CronRule,
  type TaskBackoff,
  type TaskType,
} from './task-type.ts';

/** Loaded on first use: it has 72 modules, and most processes do not need it. */
const require = createRequire(import.meta.url);
const yaml = (): typeof Yaml => require('yaml') as typeof Yaml;

type Read = (value: unknown, field: string) => Partial<Omit<TaskType, 'name'>>;

/** Readers of the fields of an entry. */
const fields: Readonly<Record<string, Read>> = {
  workers: (value, field) => ({
    workers: checkInteger(field, value, { min: 0, max: limits.workersMax }),
  }),
  step_timeout: (value, field) => ({ stepTimeoutMs: positive(field, value) }),
  retries: (value, field) => ({
    retries: checkInteger(field, value, { min: 0, max: limits.retriesMax }),
  }),
  backoff: (value, field) => ({ backoff: toBackoff(value, field) }),
  priority: (value, field) => ({
    priority: checkInteger(field, value, { min: limits.priorityMin, max: limits.priorityMax }),
  }),
  rate_limit: (value, field) => ({ rate: toRate(value, field) }),
  concurrency_key: (value, field) => ({ concurrencyKey: text(field, value) }),
  concurrency_limit: (value, field) => ({
    concurrencyLimit: checkInteger(field, value, { min: 1, max: limits.workersMax }),
  }),
  retention: (value, field) => ({ retentionMs: positive(field, value) }),
  dedupe_window: (value, field) => ({ dedupeWindowMs: positive(field, value) }),
  cron: (value, field) => ({ cron: toCron(value, field) }),
  on_lost: (value, field) => {
    if (value !== 'retry' && value !== 'fail') throw invalid(field, 'must be retry or fail');
    return { onLost: value };
  },
  cancel_deadline: (value, field) => ({ cancelDeadlineMs: duration(field, value) }),
};

/**
 * The task types of a YAML document: a map `task_types` from name to settings.
 *
 * @example
 * import { parseTaskTypes } from 'millrace/tasks';
 *
 * const [emailSend] = parseTaskTypes(`
 * task_types:
 *   email-send:
 *     workers: 4
 *     step_timeout: 30s
 * `);
 * console.log(emailSend?.stepTimeoutMs); // 30000
 */
export function parseTaskTypes(source: string): readonly TaskType[] {
  const { isMap, isScalar, LineCounter, parseDocument } = yaml();
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, uniqueKeys: true });
  const lineOf = (node: unknown): number | undefined => {
    const range = (node as Yaml.Node | null | undefined)?.range;
    return range ? lines.linePos(range[0]).line : undefined;
  };
  const [broken] = document.errors;
  if (broken !== undefined) {
    throw invalidTypes(broken.message.split('\n')[0] ?? 'is not YAML', {
      field: undefined,
      line: broken.linePos?.[0].line,
    });
  }
  const root: unknown = document.contents;
  const entries = isMap(root) ? root.get('task_types', true) : undefined;
  if (!isMap(entries)) {
    throw invalidTypes('must be a map of types', { field: 'task_types', line: lineOf(root) });
  }
  return entries.items.map(({ key, value }) => {
    const name = isScalar(key) ? String(key.value) : '';
    const field = `task_types.${name}`;
    if (!isSubjectToken('task type', name)) {
      const why = 'must be kebab-case, such as email-send';
      throw invalidTypes(why, { field, line: lineOf(key) });
    }
    const isEmpty = value === null || (isScalar(value) && value.value === null);
    if (isEmpty) return taskType(name);
    if (!isMap(value)) throw invalidTypes('must be a map', { field, line: lineOf(value) });
    return toType(name, value, lineOf);
  });
}

function toType(
  name: string,
  entry: Yaml.YAMLMap,
  lineOf: (node: unknown) => number | undefined,
): TaskType {
  const { isScalar } = yaml();
  const given: { -readonly [K in keyof TaskType]?: TaskType[K] } = {};
  for (const { key, value } of entry.items) {
    const setting = isScalar(key) ? String(key.value) : '';
    const field = `task_types.${name}.${setting}`;
    const location = { field, line: lineOf(key) };
    const read = Object.hasOwn(fields, setting) ? fields[setting] : undefined;
    if (read === undefined) {
      throw invalidTypes(`is unknown; there are ${Object.keys(fields).join(', ')}`, location);
    }
    try {
      const plain = (value as { toJSON?: () => unknown } | null)?.toJSON?.() ?? null;
      Object.assign(given, read(plain, field));
    } catch (error) {
      if (!hasCode(error, 'TASK_INVALID')) throw error;
      throw invalidTypes(error.message.replace(`${field} `, ''), location);
    }
  }
  if (given.concurrencyKey !== undefined && given.concurrencyLimit === undefined) {
    given.concurrencyLimit = 1;
  }
  return taskType(name, given);
}

function toBackoff(value: unknown, field: string): TaskBackoff {
  if (typeof value === 'string' || typeof value === 'number') {
    return { ...taskBackoffDefault, initialMs: positive(field, value) };
  }
  const { initial, factor, cap, jitter } = mapOf(value, field, [
    'initial',
    'factor',
    'cap',
    'jitter',
  ]);
  const of = (name: string, given: unknown, missing: number): number =>
    given === undefined ? missing : duration(`${field}.${name}`, given);
  const isFactor =
    factor === undefined || (typeof factor === 'number' && factor >= 1 && factor <= 10);
  if (!isFactor) throw invalid(`${field}.factor`, 'must be a number from 1 to 10');
  return {
    initialMs: of('initial', initial, taskBackoffDefault.initialMs),
    factor: factor ?? taskBackoffDefault.factor,
    capMs: of('cap', cap, taskBackoffDefault.capMs),
    jitterMs: of('jitter', jitter, taskBackoffDefault.jitterMs),
  };
}

/** `100/1m`, or a map with count, per and by (type or tenant). */
function toRate(value: unknown, field: string): RateRule {
  const short = typeof value === 'string' ? /^(\d+) *\/ *(\S+)$/.exec(value) : null;
  if (short !== null) {
    return { count: Number(short[1]), perMs: positive(field, short[2]), isPerTenant: false };
  }
  const { count, per, by = 'type' } = mapOf(value, field, ['count', 'per', 'by']);
  if (by !== 'type' && by !== 'tenant') throw invalid(`${field}.by`, 'must be type or tenant');
  return {
    count: checkInteger(`${field}.count`, count, { min: 1, max: 1_000_000 }),
    perMs: positive(`${field}.per`, per),
    isPerTenant: by === 'tenant',
  };
}

function toCron(value: unknown, field: string): CronRule {
  const map =
    typeof value === 'string'
      ? { schedule: value }
      : mapOf(value, field, ['schedule', 'time_zone', 'payload', 'tenant']);
  const {
    schedule,
    time_zone: zone = 'UTC',
    payload = null,
    tenant,
  } = map as Record<string, unknown>;
  const expression = text(`${field}.schedule`, schedule);
  const timeZone = text(`${field}.time_zone`, zone);
  parseCron(expression, timeZone);
  return {
    expression,
    timeZone,
    payload,
    tenant: tenant === undefined ? undefined : text(`${field}.tenant`, tenant),
  };
}

function mapOf(
  value: unknown,
  field: string,
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(field, `must be a map of ${names.join(', ')}`);
  }
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw invalid(`${field}.${unknown}`, `is an unknown setting; known: ${names.join(', ')}`);
  }
  return value as Readonly<Record<string, unknown>>;
}

/** YAML reads a duration without a unit as a number, which could mean seconds or milliseconds. */
function duration(field: string, value: unknown): number {
  return durationMs(field, typeof value === 'number' ? String(value) : value);
}

function positive(field: string, value: unknown): number {
  const ms = duration(field, value);
  if (ms > 0) return ms;
  throw invalid(field, 'must be longer than 0s');
}

function text(field: string, value: unknown): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= limits.keyCharsMax)
    return value;
  throw invalid(field, `must be a string of 1 to ${limits.keyCharsMax} characters`);
}

function invalidTypes(
  why: string,
  location: { readonly field: string | undefined; readonly line: number | undefined },
): MillraceError {
  const { field, line } = location;
  const where = line === undefined ? '' : `line ${line}: `;
  return new MillraceError('TASK_TYPES_INVALID', `${where}${field ?? 'the file'} ${why}`, {
    details: { field, line },
  });
}
