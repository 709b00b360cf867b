// The rules for events that clients append, the same for HTTP and gRPC: streams and event types of modules belong to their
// aggregates and sagas.

import { MillraceError } from '../../foundation/error.ts';
import type { AnyAggregate, ModuleBook } from './platform-module.ts';

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
  const byCategory = new Map<string, AnyAggregate>();
  const categoryOfType = new Map<string, string>();
  for (const aggregate of aggregates.values()) {
    const category = categoryOf(aggregate.streamOf('t', 'i'));
    byCategory.set(category, aggregate);
    for (const { type } of aggregate.events) categoryOfType.set(type, category);
  }
  return ({ stream, type, payload }, isAdmin) => {
    const category = categoryOf(stream);
    if (sagaCategories.has(category)) {
      throw notAllowed('only the saga itself may append to its stream');
    }
    const aggregate = byCategory.get(category);
    if (aggregate === undefined) {
      const owner = categoryOfType.get(type);
      if (owner === undefined) return payload;
      throw unknownEvent(type, `events of type '${type}' belong to streams of ${owner}`);
    }
    if (!isAdmin) {
      throw notAllowed(`${category} belongs to a module: send a command, or append as 'admin'`);
    }
    const known = aggregate.events.find((each) => each.type === type);
    if (known !== undefined) return known.parse(payload);
    throw unknownEvent(type, `${category} has no event of type '${type}'`);
  };
}

/** Names of streams have no hyphen before the tenant. */
function categoryOf(stream: string): string {
  const [category = ''] = stream.split('-', 1);
  return category;
}

function notAllowed(reason: string): MillraceError {
  return new MillraceError('NOT_ALLOWED', reason, { details: { field: 'stream' } });
}

function unknownEvent(type: string, reason: string): MillraceError {
  return new MillraceError('EVENT_UNKNOWN', reason, { details: { field: 'type', type } });
}
