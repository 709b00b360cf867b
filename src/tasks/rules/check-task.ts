// Validation of arguments: throws a typed error before an engine is called.

import { nameLimits } from '../../contracts/identifier.ts';
import { encodePayload } from '../../contracts/json-payload.ts';
import { durationShape, parseDuration } from '../../foundation/duration.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { subjectHeader } from '../../store/erasure.ts';
import type { TaskFilter } from '../task-engine.ts';
import { taskTypeOf, type TaskRef } from '../task-job.ts';
import { taskLimits as limits } from '../task-limits.ts';
import type { TaskQuery } from '../tasks.ts';

export function invalid(field: string, problem: string): MillraceError {
  return new MillraceError('TASK_INVALID', `${field} ${problem}`, { details: { field } });
}

export function checkInteger(
  field: string,
  value: unknown,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  const fits = typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
  if (fits) return value;
  throw invalid(field, `must be an integer from ${min} to ${max}`);
}

/**
 * The milliseconds of a duration; an invalid one throws `TASK_INVALID` with the field.
 *
 * @example
 * import { durationMs } from 'millrace/tasks';
 *
 * console.log(durationMs('timeout', '1h30m')); // 5400000
 */
export function durationMs(field: string, duration: unknown): number {
  const ms = parseDuration(duration);
  if (ms !== undefined && ms <= limits.durationMsMax) return ms;
  throw invalid(field, `must be ${durationShape}, at most 366d`);
}

/** Returns a short string without control characters. */
export function shortString(field: string, value: unknown, charsMax: number): string {
  const fits = typeof value === 'string' && value.length >= 1 && value.length <= charsMax;
  // oxlint-disable-next-line no-control-regex
  if (fits && !/[\u0000-\u001f\u007f]/.test(value)) return value;
  throw invalid(field, `must be 1 to ${charsMax} characters, none of them a control character`);
}

const nameOf = /^[A-Za-z0-9._:#-]+$/;

/** Names of steps and events, which become field names in every engine. */
export function checkName(field: string, value: unknown): string {
  const fits =
    typeof value === 'string' && value.length <= limits.stepNameCharsMax && nameOf.test(value);
  if (fits) return value;
  const chars = 'letters, digits, ".", "_", ":", "#" or "-"';
  throw invalid(field, `must be 1 to ${limits.stepNameCharsMax} ${chars}`);
}

/** The JSON of a value that is stored with a job. */
export function encodeValue(field: string, value: unknown): string {
  try {
    return encodePayload(value === undefined ? null : value, {
      payloadBytesMax: limits.valueBytesMax,
    }).json;
  } catch (error) {
    if (!hasCode(error, 'PAYLOAD_NOT_JSON') && !hasCode(error, 'PAYLOAD_TOO_LARGE')) throw error;
    const { code, message, details } = error;
    throw new MillraceError(code, `${field}: ${message}`, { details: { ...details, field } });
  }
}

const idOf = /^[a-z][a-z0-9-]{0,63}\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function refOf(id: unknown): TaskRef {
  if (typeof id === 'string' && idOf.test(id)) return { id, type: taskTypeOf(id) };
  throw invalid('id', 'must be a job id as returned by enqueue: email-send.0199…');
}

export function checkWorker(worker: unknown): string {
  return shortString('worker', worker, limits.workerCharsMax);
}

const labelName = /^[A-Za-z0-9._-]+$/;

export function toLabels(labels: Readonly<Record<string, string>> = {}): readonly string[] {
  const entries = Object.entries(labels);
  if (entries.length > limits.labelsMax) {
    throw invalid('labels', `must have at most ${limits.labelsMax} entries`);
  }
  return entries
    .map(([name, value]) => {
      if (!labelName.test(name) || name.length > limits.labelCharsMax) {
        throw invalid('labels', `must have names of letters, digits, ".", "_" and "-"`);
      }
      const charsMax = name === subjectHeader ? nameLimits.keyCharsMax : limits.labelCharsMax;
      return `${name}=${shortString(`labels.${name}`, value, charsMax)}`;
    })
    .toSorted();
}

export function toFilter(query: TaskQuery): TaskFilter {
  const states = typeof query.state === 'string' ? [query.state] : query.state;
  return {
    type: query.type,
    states,
    tenant: query.tenant,
    labels: query.labels === undefined ? undefined : toLabels(query.labels),
    parentId: query.parentId,
    enqueuedFromMs: query.enqueuedFrom?.getTime(),
    enqueuedBeforeMs: query.enqueuedBefore?.getTime(),
    updatedFromMs: query.updatedFrom?.getTime(),
    updatedBeforeMs: query.updatedBefore?.getTime(),
  };
}

export function stale(id: string): MillraceError {
  return new MillraceError(
    'TASK_STALE',
    `this worker no longer has job '${id}': its fence is outdated`,
    {
      details: { id },
    },
  );
}
