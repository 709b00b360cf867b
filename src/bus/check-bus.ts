// Validates the arguments of the bus before an engine gets them.

import { validateSubject } from '../contracts/subject-match.ts';
import { MillraceError } from '../foundation/error.ts';
import type { BusCapabilities, StartFrom, StreamPage, TrimOrder } from './bus.ts';
import { busLimits as limits } from './bus-limits.ts';
import { isSequence } from './sequence.ts';

const groupName = /^[A-Za-z0-9_-]+$/;

export function checkGroupName(group: unknown): void {
  const fits =
    typeof group === 'string' && group.length <= limits.groupCharsMax && groupName.test(group);
  if (fits) return;
  throw invalid(
    'group',
    `must be 1 to ${limits.groupCharsMax} letters, digits, "_" or "-", such as email-send-workers`,
  );
}

export function checkStart(
  field: string,
  start: StartFrom,
  { subject, capabilities }: { readonly subject: string; readonly capabilities: BusCapabilities },
): void {
  if (start === 'start' || start === 'end') return;
  if (typeof start !== 'object' || start === null) {
    throw invalid(field, `must be 'start', 'end', or an object with time, sequence or position`);
  }
  if ('time' in start) {
    if (!(start.time instanceof Date) || Number.isNaN(start.time.getTime())) {
      throw invalid(field, `has an invalid time: pass a valid Date`);
    }
  } else if ('sequence' in start) {
    if (typeof start.sequence !== 'string' || !isSequence(start.sequence)) {
      throw invalid(
        field,
        `has the invalid sequence '${start.sequence}': pass the sequence of a message`,
      );
    }
    if (/(?:^|\.)[*>](?:\.|$)/.test(subject)) {
      throw invalid(
        field,
        `has a sequence, which is only valid for one full subject; '${subject}' is a pattern`,
      );
    }
  } else if (!capabilities.patternPositions) {
    throw new MillraceError(
      'NOT_SUPPORTED',
      'this engine has no order over all subjects and cannot start at a position: use a time, or a full subject and a sequence',
    );
  } else if (typeof start.position !== 'string' || !isSequence(start.position)) {
    throw invalid(
      field,
      `has the invalid position '${start.position}': pass the position of a message`,
    );
  }
}

export function checkTrim(order: TrimOrder, capabilities: BusCapabilities): void {
  const { storedBefore, beforeSequence, lengthMax, bytesMax } = order;
  if (storedBefore !== undefined && Number.isNaN(storedBefore.getTime())) {
    throw invalid('storedBefore', 'must be a valid Date');
  }
  if (beforeSequence !== undefined && !isSequence(beforeSequence)) {
    throw invalid(
      'beforeSequence',
      `is the invalid sequence '${beforeSequence}': pass the sequence of a message`,
    );
  }
  if (lengthMax !== undefined) checkInteger('lengthMax', lengthMax, { min: 0 });
  if (bytesMax !== undefined) {
    checkInteger('bytesMax', bytesMax, { min: 0 });
    if (!capabilities.streamBytes) {
      throw new MillraceError(
        'NOT_SUPPORTED',
        'this engine does not report the bytes of a stream: trim by time or length',
      );
    }
  }
  if ([storedBefore, beforeSequence, lengthMax, bytesMax].every((each) => each === undefined)) {
    throw invalid(
      'order',
      'must have at least one of storedBefore, beforeSequence, lengthMax, bytesMax',
    );
  }
}

export function toPage(page: StreamPage): { readonly after: string | undefined; limit: number } {
  const limit = checkInteger('limit', page.limit ?? limits.pageDefault, {
    min: 1,
    max: limits.pageMax,
  });
  if (page.after !== undefined) validateSubject(page.after);
  return { after: page.after, limit };
}

export function checkInteger(
  field: string,
  value: number,
  {
    min,
    max = Number.MAX_SAFE_INTEGER,
  }: { readonly min: number; readonly max?: number | undefined },
): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(field, `must be an integer from ${min} to ${max}, not ${value}`);
}

export function invalid(field: string, problem: string): MillraceError {
  return new MillraceError('BUS_INVALID', `${field} ${problem}`, { details: { field } });
}
