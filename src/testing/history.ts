// Compares the operations of clients with the events in a store and the events that readers received. Pure functions.

import assert from 'node:assert/strict';
import type { ExpectedRevision } from '../store/expected-revision.ts';

export interface HistoryWrite {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly eventIds: readonly string[];
}

export interface HistoryResult {
  /** The revision of the last event of the write. */
  readonly revision: number;
  readonly position: string;
}

/**
 * A client's record of an operation: `invoke` before the call, then its result. Without a result, or with `unknown`,
 * the operation may have happened or not.
 */
export type HistoryEntry =
  | {
      readonly kind: 'invoke';
      readonly operation: string;
      readonly writes: readonly HistoryWrite[];
    }
  | {
      readonly kind: 'ok';
      readonly operation: string;
      readonly results: readonly HistoryResult[];
    }
  /** The operation was rejected or rolled back: none of its events may be visible. */
  | { readonly kind: 'fail'; readonly operation: string; readonly reason: string }
  | { readonly kind: 'unknown'; readonly operation: string; readonly reason: string };

/** Where an event was found; recorded events fit. */
export interface EventLocation {
  readonly eventId: string;
  readonly stream: string;
  readonly revision: number;
  readonly position: string;
}

export type HistoryRule =
  /** An event was acknowledged, but not stored. */
  | 'lost'
  /** An event is stored at another position than acknowledged or expected. */
  | 'misplaced'
  /** An operation is stored partially. */
  | 'torn'
  /** A rejected operation is stored. */
  | 'rejected-but-stored'
  /** An event is stored without an operation. */
  | 'phantom'
  | 'stored-twice'
  /** The revisions of a stream are not 0, 1, 2, … */
  | 'gap'
  /** Positions do not ascend. */
  | 'inversion'
  | 'not-delivered'
  | 'delivered-twice'
  | 'out-of-order';

export interface Violation {
  readonly rule: HistoryRule;
  readonly message: string;
}

interface Operation {
  readonly name: string;
  readonly writes: readonly HistoryWrite[];
  outcome: 'ok' | 'fail' | 'unknown';
  results: readonly HistoryResult[];
}

/**
 * Parses the history file of one client, one JSON line per entry. The last line may be cut off by a kill.
 *
 * @example
 * import { parseHistory } from 'millrace/testing';
 *
 * console.log(parseHistory('{"kind":"fail","operation":"a-1","reason":"VERSION_CONFLICT"}\n{"kin').length); // 1
 */
export function parseHistory(text: string): HistoryEntry[] {
  const complete = text.slice(0, text.lastIndexOf('\n') + 1);
  return complete
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as HistoryEntry);
}

/**
 * Checks that a store agrees with its acknowledgements: no acknowledged event is lost or misplaced, and no rejected or
 * partial operation is stored. No event may be stored twice, no stream may have a gap, and positions must ascend.
 * `stored` contains all events, in the order of the store.
 *
 * @example
 * import { checkStored } from 'millrace/testing';
 *
 * const writes = [{ stream: 'a', expected: 'any', eventIds: ['e1'] }] as const;
 * const results = [{ revision: 0, position: '0000000000000001' }];
 * const history = [
 *   { kind: 'invoke', operation: '1', writes },
 *   { kind: 'ok', operation: '1', results },
 * ] as const;
 * console.log(checkStored(history, [])); // [{ rule: 'lost', … }]
 */
export function checkStored(
  history: Iterable<HistoryEntry>,
  stored: readonly EventLocation[],
): Violation[] {
  const locations = new Map<string, EventLocation>();
  const violations: Violation[] = checkOrder(stored);
  for (const location of stored) {
    const first = locations.get(location.eventId);
    if (first === undefined) locations.set(location.eventId, location);
    else violations.push(violation('stored-twice', `${show(first)} and ${show(location)}`));
  }
  const invokedIds = new Set<string>();
  for (const operation of operationsOf(history)) {
    for (const { eventIds } of operation.writes) for (const id of eventIds) invokedIds.add(id);
    violations.push(...checkOperation(operation, locations));
  }
  for (const location of stored) {
    if (!invokedIds.has(location.eventId)) violations.push(violation('phantom', show(location)));
  }
  return violations;
}

/**
 * Checks that a reader received each event of `stored` once, in order.
 *
 * @example
 * import { checkDelivered } from 'millrace/testing';
 *
 * const event = { eventId: 'e1', stream: 'a', revision: 0, position: '0000000000000001' };
 * console.log(checkDelivered([event], [event, event])); // [{ rule: 'delivered-twice', … }]
 */
export function checkDelivered(
  stored: readonly EventLocation[],
  delivered: readonly EventLocation[],
): Violation[] {
  const violations: Violation[] = [];
  const expected = new Map(stored.map((location) => [location.eventId, location]));
  const got = new Set<string>();
  let before: EventLocation | undefined;
  for (const location of delivered) {
    const known = expected.get(location.eventId);
    if (known === undefined || show(known) !== show(location)) {
      violations.push(violation('phantom', `${show(location)} was delivered`));
    }
    if (got.has(location.eventId)) {
      violations.push(violation('delivered-twice', show(location)));
    } else if (before !== undefined && before.position >= location.position) {
      violations.push(violation('out-of-order', `${show(location)} after ${show(before)}`));
    }
    got.add(location.eventId);
    before = location;
  }
  for (const location of stored) {
    if (!got.has(location.eventId)) violations.push(violation('not-delivered', show(location)));
  }
  return violations;
}

/**
 * Fails with the first violations and the information to repeat the run.
 *
 * @example
 * import { assertNoViolations, checkDelivered } from 'millrace/testing';
 *
 * assertNoViolations(checkDelivered([], []), 'seed 42');
 */
export function assertNoViolations(violations: readonly Violation[], run: string): void {
  const shown = violations.slice(0, 20).map(({ rule, message }) => `  ${rule}: ${message}`);
  const more = violations.length > shown.length ? `\n  … of ${violations.length}` : '';
  assert.equal(violations.length, 0, `${run}\n${shown.join('\n')}${more}`);
}

/** Positions ascend, and the revisions of each stream are 0, 1, 2, … */
function checkOrder(stored: readonly EventLocation[]): Violation[] {
  const violations: Violation[] = [];
  const next = new Map<string, number>();
  let before: EventLocation | undefined;
  for (const location of stored) {
    if (before !== undefined && before.position >= location.position) {
      violations.push(violation('inversion', `${show(location)} after ${show(before)}`));
    }
    const revision = next.get(location.stream) ?? 0;
    if (location.revision !== revision) {
      violations.push(violation('gap', `${show(location)} where revision ${revision} should be`));
    }
    next.set(location.stream, location.revision + 1);
    before = location;
  }
  return violations;
}

function checkOperation(
  operation: Operation,
  locations: ReadonlyMap<string, EventLocation>,
): Violation[] {
  const { name, writes, outcome } = operation;
  const eventIds = writes.flatMap((write) => write.eventIds);
  const missing = eventIds.filter((id) => !locations.has(id));
  const isStored = missing.length < eventIds.length;
  if (outcome === 'fail') {
    return isStored ? [violation('rejected-but-stored', `operation ${name}`)] : [];
  }
  if (outcome === 'ok' && missing.length > 0) {
    return [violation('lost', `operation ${name}: ${missing.join(', ')}`)];
  }
  if (isStored && missing.length > 0) {
    return [violation('torn', `operation ${name} lacks ${missing.join(', ')}`)];
  }
  return isStored ? writes.flatMap((write, index) => checkWrite(operation, write, index)) : [];

  function checkWrite({ results }: Operation, write: HistoryWrite, index: number): Violation[] {
    const { stream, expected, eventIds: ids } = write;
    const found = ids.map((id) => locations.get(id) as EventLocation);
    const [first] = found;
    const last = found.at(-1);
    if (first === undefined || last === undefined) return [];
    const wrong = (what: string): Violation[] => [
      violation('misplaced', `operation ${name}: ${what}: ${show(first)} to ${show(last)}`),
    ];
    if (found.some((location) => location.stream !== stream)) return wrong(`not in ${stream}`);
    if (found.some((location, at) => location.revision !== first.revision + at))
      return wrong('not contiguous');
    const exact = expected === 'none' ? -1 : expected;
    if (typeof exact === 'number' && first.revision !== exact + 1)
      return wrong(`expected ${expected}`);
    const result = results[index];
    if (result === undefined) return [];
    const { revision, position } = result;
    return revision === last.revision && position === last.position
      ? []
      : wrong(`acknowledged at revision ${revision}, position ${position}`);
  }
}

function operationsOf(history: Iterable<HistoryEntry>): Iterable<Operation> {
  const operations = new Map<string, Operation>();
  for (const entry of history) {
    const { kind, operation: name } = entry;
    if (kind === 'invoke') {
      const { writes } = entry;
      operations.set(name, { name, writes, outcome: 'unknown', results: [] });
      continue;
    }
    const operation = operations.get(name);
    if (operation === undefined) throw new Error(`operation ${name} was never invoked`);
    // The last result counts, because an unknown operation may be retried under the same name.
    operation.outcome = kind;
    if (kind === 'ok') operation.results = entry.results;
  }
  return operations.values();
}

function violation(rule: HistoryRule, message: string): Violation {
  return { rule, message };
}

function show({ eventId, stream, revision, position }: EventLocation): string {
  return `${eventId} (${stream} @${revision}, position ${position})`;
}
