// The rules for events that clients append, the same for HTTP and gRPC: streams and event types of modules belong to their
// aggregates and sagas.

import { MillraceError } from '../../foundation/error.ts';
import { categoryOf } from '../../store/stream-category.ts';
import type { ModuleBook } from './platform-module.ts';

export interface ClientEvent {
  readonly stream: string;
  readonly type: string;
  /** Absent: the client sent bytes that are not JSON. */
  readonly payload?: unknown;
}

/**
 * Returns the payload as the schema of its event transforms it; throws `NOT_ALLOWED`, `EVENT_UNKNOWN` or `PAYLOAD_INVALID`.
 * `isAdmin`: only administrators append to the stream of an aggregate, because that bypasses its commands.
 */
export type AcceptEvent = (event: ClientEvent, isAdmin: boolean) => unknown;

/**
 * The rules of the loaded modules: an event that breaks them would block its aggregate, or forge a decision of the module.
 *
 * @example
 * import { createAppendRules, createPlatform } from 'millrace/platform';
 * import { startKurrentServer } from 'millrace/server/kurrent';
 *
 * await using platform = await createPlatform();
 * await using server = await startKurrentServer(platform.engines.store, {
 *   port: 0,
 *   accept: createAppendRules(platform.modules),
 * });
 */
export function createAppendRules({
  aggregates,
  sagas,
}: Pick<ModuleBook, 'aggregates' | 'sagas'>): AcceptEvent {
  const sagaCategories = new Set(sagas.map(({ category }) => category));
  const categoriesOfType = new Map<string, readonly string[]>();
  for (const [category, { events }] of aggregates) {
    for (const { type } of events) {
      categoriesOfType.set(type, [...(categoriesOfType.get(type) ?? []), category]);
    }
  }
  return ({ stream, type, payload }, isAdmin) => {
    const category = categoryOf(stream) ?? '';
    if (sagaCategories.has(category)) {
      throw notAllowed('only the saga itself may append to its stream');
    }
    const aggregate = aggregates.get(category);
    if (aggregate === undefined) {
      const owners = categoriesOfType.get(type);
      if (owners === undefined) return payload;
      const streams = owners.join(' and ');
      throw unknownEvent(type, `events of type '${type}' belong to streams of ${streams}`);
    }
    if (!isAdmin) {
      throw notAllowed(`${category} belongs to a module: send a command, or append as 'admin'`);
    }
    const known = aggregate.events.find((each) => each.type === type);
    if (known !== undefined) return known.parse(payload);
    throw unknownEvent(type, `${category} has no event of type '${type}'`);
  };
}

function notAllowed(reason: string): MillraceError {
  return new MillraceError('NOT_ALLOWED', reason, { details: { field: 'stream' } });
}

function unknownEvent(type: string, reason: string): MillraceError {
  return new MillraceError('EVENT_UNKNOWN', reason, { details: { field: 'type', type } });
}
