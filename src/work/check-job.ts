// Validation that all engines share.

import { MillraceError } from '../foundation/error.ts';
import { workLimits as limits, type NewJob } from './work-queue.ts';

const queueName = /^[A-Za-z][A-Za-z0-9._-]{0,99}$/;
// BullMQ reserves numeric ids, and uses colons in its keys.
const jobId = /^(?!\d+$)[A-Za-z0-9._-]+$/;

export function checkQueueName(name: string): void {
  if (!queueName.test(name)) {
    throw invalid(
      'name',
      `'${name.slice(0, 60)}' is not a queue name, such as MessageRequestQueue`,
    );
  }
}

/** Returns the data as JSON. */
export function checkJob({ id, name, data, priority, delayMs, ...kept }: NewJob): string {
  if (!jobId.test(id) || id.length > limits.jobIdCharsMax) {
    throw invalid('id', `'${id.slice(0, 60)}' is not a job id: use letters, digits, '.', '_', '-'`);
  }
  if (name === '') throw invalid('name', 'the name of a job must not be empty');
  if (priority !== undefined && !isWhole(priority, 1, limits.priorityMax)) {
    throw invalid('priority', `priority must be from 1 to ${limits.priorityMax}`);
  }
  if (delayMs !== undefined && !isWhole(delayMs, 0, Number.MAX_SAFE_INTEGER)) {
    throw invalid('delayMs', 'delayMs must be a whole number of milliseconds');
  }
  for (const count of [kept.removeOnComplete, kept.removeOnFail]) {
    if (count !== undefined && !isWhole(count, 0, 10_000)) {
      throw invalid('removeOnComplete', 'removeOnComplete must be at most 10,000');
    }
  }
  const json = JSON.stringify(data);
  if (Buffer.byteLength(json) > limits.dataBytesMax) {
    throw invalid('data', `data must have at most ${limits.dataBytesMax} bytes: use ids`);
  }
  return json;
}

function isWhole(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}

function invalid(field: string, message: string): MillraceError {
  return new MillraceError('JOB_INVALID', message, { details: { field } });
}
