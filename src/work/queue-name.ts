// Names of queues and patterns of them, shared by all engines.

import { MillraceError } from '../foundation/error.ts';
import { workLimits as limits } from './work-queue.ts';

/** A prefix, and after the last colon a name, which may hold any integration type of the outbox. */
const queueName = /^([^\s*]+:)?[^:{}]+$/u;

/** Throws `JOB_INVALID`. */
export function checkQueueName(name: string): void {
  if (queueName.test(name) && name.length <= limits.queueNameCharsMax) return;
  throw new MillraceError(
    'JOB_INVALID',
    `invalid queue name '${name.slice(0, 60)}': use a name without ':', '{' and '}', or <prefix>:<name>`,
    { details: { field: 'queue' } },
  );
}

export function isPattern(name: string): boolean {
  return name.includes('*');
}
