// How the jobs of a type are run; an entry of `task_types` in YAML (parse-task-types.ts).

import type { BackoffPolicy } from '../foundation/backoff.ts';
import { MillraceError } from '../foundation/error.ts';
import type { RateRule } from './task-engine.ts';
import { taskLimits as limits } from './task-limits.ts';

export type TaskBackoff = Omit<BackoffPolicy, 'attemptsMax'>;

export interface CronRule {
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  readonly expression: string;
  /** An IANA name, such as Europe/Berlin. */
  readonly timeZone: string;
  readonly payload: unknown;
  readonly tenant: string | undefined;
}

export interface TaskType {
  readonly name: string;
  /** Concurrent jobs per process. */
  readonly workers: number;
  readonly stepTimeoutMs: number;
  /** Attempts after the first failed one. */
  readonly retries: number;
  readonly backoff: TaskBackoff;
  readonly priority: number;
  readonly rate: RateRule | undefined;
  /** `tenant`, or a path in the payload: `customer.id`. A job may set its own key instead. */
  readonly concurrencyKey: string | undefined;
  readonly concurrencyLimit: number | undefined;
  /** How long ended jobs are kept. */
  readonly retentionMs: number;
  readonly cron: CronRule | undefined;
  /** Undefined: a key is unique as long as its job is kept. */
  readonly dedupeWindowMs: number | undefined;
  /** When a worker is gone or a step hangs: `retry` counts as a failed attempt. */
  readonly onLost: 'retry' | 'fail';
  readonly cancelDeadlineMs: number;
}

/**
 * A task type with defaults for missing settings.
 *
 * @example
 * import { taskType } from 'millrace/tasks';
 *
 * console.log(taskType('email-send', { workers: 4 }).retries); // 3
 */
export function taskType(name: string, settings: Partial<Omit<TaskType, 'name'>> = {}): TaskType {
  return {
    name,
    workers: settings.workers ?? limits.workersDefault,
    stepTimeoutMs: settings.stepTimeoutMs ?? limits.stepTimeoutMsDefault,
    retries: settings.retries ?? limits.retriesDefault,
    backoff: settings.backoff ?? taskBackoffDefault,
    priority: settings.priority ?? limits.priorityDefault,
    rate: settings.rate,
    concurrencyKey: settings.concurrencyKey,
    concurrencyLimit: settings.concurrencyLimit,
    retentionMs: settings.retentionMs ?? limits.retentionMsDefault,
    cron: settings.cron,
    dedupeWindowMs: settings.dedupeWindowMs,
    onLost: settings.onLost ?? 'retry',
    cancelDeadlineMs: settings.cancelDeadlineMs ?? limits.cancelDeadlineMsDefault,
  };
}

/** 1, 2, 4 … 60 s, plus up to 200 ms of jitter. */
export const taskBackoffDefault: TaskBackoff = {
  initialMs: 1_000,
  factor: 2,
  capMs: 60_000,
  jitterMs: 200,
};

/** The concurrency key of a job, by the rule of its type. `''`: none. */
export function concurrencyKeyOf(
  { concurrencyKey }: TaskType,
  { tenant, payload }: { readonly tenant: string; readonly payload: unknown },
): string {
  if (concurrencyKey === undefined) return '';
  if (concurrencyKey === 'tenant') return tenant;
  let value: unknown = payload;
  for (const part of concurrencyKey.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return '';
    value = (value as Readonly<Record<string, unknown>>)[part];
  }
  const isPlain = typeof value === 'string' || typeof value === 'number';
  // Includes the tenant, so that equal customer ids of two tenants are two keys.
  return isPlain ? `${tenant}|${String(value)}`.slice(0, limits.keyCharsMax) : '';
}

/** The configured task types, and those that were configured before. */
export interface KnownTypes {
  readonly all: () => readonly TaskType[];
  /** Throws `TASK_TYPE_UNKNOWN` for a type that is not configured. */
  readonly configured: (name: string) => TaskType;
  /** Also a type that is no longer configured: its remaining jobs run by the old rules. */
  readonly workable: (name: string) => TaskType;
  /** The same, with the defaults for a type that was never configured in this process. */
  readonly rulesOf: (name: string) => TaskType;
  readonly set: (next: readonly TaskType[]) => void;
}

export function createKnownTypes(initial: readonly TaskType[]): KnownTypes {
  let types = new Map(initial.map((type) => [type.name, type]));
  const retired = new Map<string, TaskType>();

  function configured(name: string): TaskType {
    const type = types.get(name);
    if (type !== undefined) return type;
    const known = [...types.keys()].slice(0, 50);
    throw new MillraceError(
      'TASK_TYPE_UNKNOWN',
      `unknown task type '${name}'; configured: ${known.join(', ') || 'none'}`,
      {
        details: { type: name, known },
      },
    );
  }

  return {
    all: () => [...types.values()],
    configured,
    workable: (name) => types.get(name) ?? retired.get(name) ?? configured(name),
    rulesOf: (name) => types.get(name) ?? retired.get(name) ?? taskType(name),
    set(next) {
      for (const [name, type] of types) retired.set(name, type);
      types = new Map(next.map((type) => [type.name, type]));
      for (const name of types.keys()) retired.delete(name);
    },
  };
}
