// Validation of new jobs, shared by all engines.

import { MillraceError } from '../foundation/error.ts';
import { workLimits as limits, type NewJob } from './work-queue.ts';

// BullMQ reserves numeric ids, and uses colons in its keys.
const jobId = /^(?!\d+$)[^:\p{Cc}\s]+$/u;

/** Returns the data of the job as JSON; throws `JOB_INVALID`. */
export function checkJob(job: NewJob): string {
  const { id, name, data, priority, delayMs, removeOnComplete, removeOnFail } = job;
  if (!jobId.test(id) || id.length > limits.jobIdCharsMax) {
    throw invalid(
      'id',
      `invalid job id '${id.slice(0, 60)}': use visible characters except ':', and not only digits`,
    );
  }
  if (name === '') throw invalid('name', 'the name of a job must not be empty');
  if (priority !== undefined && !isIntegerWithin(priority, 1, limits.priorityMax)) {
    throw invalid(
      'priority',
      `priority must be an integer from 1 to ${limits.priorityMax}, not ${priority}`,
    );
  }
  if (delayMs !== undefined && !isIntegerWithin(delayMs, 0, Number.MAX_SAFE_INTEGER)) {
    throw invalid('delayMs', `delayMs must be an integer of milliseconds, not ${delayMs}`);
  }
  for (const [field, count] of Object.entries({ removeOnComplete, removeOnFail })) {
    if (count !== undefined && !isIntegerWithin(count, 0, 10_000)) {
      throw invalid(field, `${field} must be an integer from 0 to 10000, not ${count}`);
    }
  }
  const json = JSON.stringify(data);
  if (Buffer.byteLength(json) > limits.dataBytesMax) {
    throw invalid('data', `data must have at most ${limits.dataBytesMax} bytes: use ids`);
  }
  return json;
}

function isIntegerWithin(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}

function invalid(field: string, message: string): MillraceError {
  return new MillraceError('JOB_INVALID', message, { details: { field } });
}
