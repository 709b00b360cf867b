// The order of commits in the writer thread: requests that callers wait for go before housekeeping.

import type { PlainAppend } from './packed-append.ts';
import type { OperationName, WriterRequest } from './protocol.ts';

export type Work = PlainAppend | WriterRequest;

export interface RequestQueue {
  readonly size: number;
  /** The number of requests that are not housekeeping. */
  readonly foreground: number;
  add(work: Work): void;
  /** The requests of the next commit. */
  next(): readonly Work[];
}

/** The most commits of other requests before the next piece of housekeeping: no flow of requests can starve it. */
export const foregroundGroupsMax = 32;

/** Later requests may overtake these: they remove only rows that no later request needs. */
const housekeepingOperations: ReadonlySet<OperationName> = new Set([
  'bus.trim',
  'documents.clear',
  'tasks.remove',
  'tasks.tidy',
] as const);

export function createRequestQueue(): RequestQueue {
  let foreground: Work[] = [];
  const housekeeping: Work[] = [];
  let groups = 0;
  return {
    get size() {
      return foreground.length + housekeeping.length;
    },
    get foreground() {
      return foreground.length;
    },
    add(work) {
      if (isHousekeeping(work)) housekeeping.push(work);
      else foreground.push(work);
    },
    next() {
      const isForegroundNext =
        foreground.length > 0 && (housekeeping.length === 0 || groups < foregroundGroupsMax);
      if (!isForegroundNext) {
        groups = 0;
        // A separate commit for each piece: an append that arrives now waits for one piece only.
        return housekeeping.splice(0, 1);
      }
      groups = housekeeping.length === 0 ? 0 : groups + 1;
      const group = foreground;
      foreground = [];
      return group;
    },
  };
}

function isHousekeeping(work: Work): boolean {
  if ('write' in work) return false;
  return work.operation === 'sql.run'
    ? work.statements.every((statement) => statement.isHousekeeping === true)
    : housekeepingOperations.has(work.operation);
}
