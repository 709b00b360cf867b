// The edge of the bus: what is refused, by a typed error, before an engine sees it.

import { validatePattern, validateSubject } from '../contracts/subject-match.ts';
import { MillraceError } from '../foundation/error.ts';
import type { GroupDefinition, StartFrom, StreamPage, TrimOrder } from './bus.ts';
import type { BusCapabilities } from './bus.ts';
import type { GroupSettings } from './bus-engine.ts';
import { busLimits as limits } from './bus-limits.ts';
import { redoSubject } from './dead-letter.ts';
import { isSequence } from './sequence.ts';

export function toGroupSettings(
  definition: GroupDefinition,
  capabilities: BusCapabilities,
): GroupSettings {
  const { group, subject, start = 'start' } = definition;
  checkGroupName(group);
  validatePattern(subject);
  checkStart('start', start, { subject, capabilities });
  return {
    name: group,
    filters: [subject, redoSubject(group)],
    start,
    leaseMs: wholeNumber('leaseMs', definition.leaseMs ?? limits.leaseMsDefault, {
      min: limits.leaseMsMin,
      max: limits.leaseMsMax,
    }),
    maxAckPending: wholeNumber(
      'maxAckPending',
      definition.maxAckPending ?? limits.maxAckPendingDefault,
      { min: 1, max: limits.maxAckPendingMax },
    ),
  };
}

export function maxDeliveriesOf({ maxDeliveries }: GroupDefinition): number {
  return wholeNumber('maxDeliveries', maxDeliveries ?? limits.maxDeliveriesDefault, {
    min: 1,
    max: limits.maxDeliveriesMax,
  });
}

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
  if (start === 'start' || start === 'now') return;
  if (typeof start !== 'object' || start === null) {
    throw invalid(field, `must be 'start', 'now', or an object with time, sequence or position`);
  }
  if ('time' in start) {
    if (!(start.time instanceof Date) || Number.isNaN(start.time.getTime())) {
      throw invalid(field, 'must have a valid Date as its time');
    }
  } else if ('sequence' in start) {
    if (typeof start.sequence !== 'string' || !isSequence(start.sequence)) {
      throw invalid(field, 'must have a sequence as it came with a message');
    }
    if (/(?:^|\.)[*>](?:\.|$)/.test(subject)) {
      throw invalid(
        field,
        `has a sequence, which counts within one subject; '${subject}' is a pattern`,
      );
    }
  } else if (!capabilities.patternPositions) {
    throw new MillraceError(
      'NOT_SUPPORTED',
      'this engine has no order over subjects, so that no position can be gone on from: use time, or a subject and a sequence',
    );
  } else if (typeof start.position !== 'string' || !isSequence(start.position)) {
    throw invalid(field, 'must have a position as it came with a message');
  }
}

export function checkTrim(order: TrimOrder, capabilities: BusCapabilities): void {
  const { storedBefore, beforeSequence, lengthMax, bytesMax } = order;
  if (storedBefore !== undefined && Number.isNaN(storedBefore.getTime())) {
    throw invalid('storedBefore', 'must be a valid Date');
  }
  if (beforeSequence !== undefined && !isSequence(beforeSequence)) {
    throw invalid('beforeSequence', 'must be a sequence as it came with a message');
  }
  if (lengthMax !== undefined) wholeNumber('lengthMax', lengthMax, { min: 0 });
  if (bytesMax !== undefined) {
    wholeNumber('bytesMax', bytesMax, { min: 0 });
    if (!capabilities.streamBytes) {
      throw new MillraceError(
        'NOT_SUPPORTED',
        'this engine does not know the bytes of a stream: trim by time or length',
      );
    }
  }
  if ([storedBefore, beforeSequence, lengthMax, bytesMax].every((each) => each === undefined)) {
    throw invalid('order', 'must say what is to go: storedBefore, beforeSequence, lengthMax, …');
  }
}

export function toPage(page: StreamPage): { readonly after: string | undefined; limit: number } {
  const limit = wholeNumber('limit', page.limit ?? limits.pageDefault, {
    min: 1,
    max: limits.pageMax,
  });
  if (page.after !== undefined) validateSubject(page.after);
  return { after: page.after, limit };
}

export function wholeNumber(
  field: string,
  value: number,
  { min, max = Number.MAX_SAFE_INTEGER }: { readonly min: number; readonly max?: number },
): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(field, `must be a whole number from ${min} to ${max}, not ${value}`);
}

export function invalid(field: string, problem: string): MillraceError {
  return new MillraceError('BUS_INVALID', `${field} ${problem}`, { details: { field } });
}
