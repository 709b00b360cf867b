// What no engine could keep is refused by all of them alike.

import { MillraceError } from '../foundation/error.ts';
import { workLimits as limits, type NewJob } from './work-queue.ts';

const queueName = /^[A-Za-z][A-Za-z0-9._-]{0,99}$/;
// BullMQ takes digits for ids of its own, and colons for parts of keys.
const jobId = /^(?!\d+$)[A-Za-z0-9._-]+$/;

export function checkQueueName(name: string): void {
  if (!queueName.test(name)) {
    throw invalid(
      'name',
      `'${name.slice(0, 60)}' is no name of a queue, such as MessageRequestQueue`,
    );
  }
}

/** Returns the data as JSON. */
export function checkJob({ id, name, data, priority, delayMs, ...kept }: NewJob): string {
  if (!jobId.test(id) || id.length > limits.jobIdCharsMax) {
    throw invalid('id', `'${id.slice(0, 60)}' is no id of a job: letters, digits, '.', '_', '-'`);
  }
  if (name === '') throw invalid('name', 'a job has a name');
  if (priority !== undefined && !isWhole(priority, 1, limits.priorityMax)) {
    throw invalid('priority', `a priority is from 1 to ${limits.priorityMax}`);
  }
  if (delayMs !== undefined && !isWhole(delayMs, 0, Number.MAX_SAFE_INTEGER)) {
    throw invalid('delayMs', 'a delay is a whole number of milliseconds');
  }
  for (const count of [kept.removeOnComplete, kept.removeOnFail]) {
    if (count !== undefined && !isWhole(count, 0, 10_000)) {
      throw invalid('removeOnComplete', 'at most 10,000 finished jobs are kept');
    }
  }
  const json = JSON.stringify(data);
  if (Buffer.byteLength(json) > limits.dataBytesMax) {
    throw invalid('data', `a job is a pointer, of at most ${limits.dataBytesMax} bytes`);
  }
  return json;
}

function isWhole(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}

function invalid(field: string, message: string): MillraceError {
  return new MillraceError('JOB_INVALID', message, { details: { field } });
}
