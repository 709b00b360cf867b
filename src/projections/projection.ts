// The definition of a projection: which events change which documents of a read model, and how.

import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import { buildCategory } from '../contracts/stream-name.ts';
import { parseSubscriptionName } from '../contracts/subscription-name.ts';
import type { BackoffPolicy } from '../foundation/backoff.ts';
import { MillraceError } from '../foundation/error.ts';
import { isForgotten, type Forgotten } from '../store/erasure.ts';
import { compileFilter, namesStreams, type EventFilter } from '../store/event-filter.ts';
import type { ReadModel } from './read-model.ts';

/** Defaults and limits of projections. */
export const projectionLimits = {
  /** Events per batch, and the number of parallel batches. */
  batchSize: 1_000,
  lanes: 4,
  inFlightMax: 8_000,
  waitMs: 30_000,
  /** Events per page of a rebuild. */
  rebuildPage: 5_000,
  /** Documents that a rebuild caches in memory, and their total length. */
  rebuildDocuments: 20_000,
  rebuildChars: 32 * 1_048_576,
  rebuildCheckpointMs: 100,
  /** Maximum length of the documents in one write to the read model store. */
  writeChars: 8 * 1_048_576,
  leaseMs: 10_000,
} as const;

/**
 * The fields of an event that a handler sees. These fields are the same in the append's transaction, in the
 * subscription, and in a rebuild years later.
 */
export type ProjectedEvent<Payload = unknown> = DomainEventEnvelope<Payload> & {
  readonly stream: string;
  readonly revision: number;
};

/** Returns the new document; null removes it. The current document is null if it does not exist. */
export type Apply<Document, Payload> = (
  document: Document | null,
  event: ProjectedEvent<Payload>,
) => Document | null;

export interface ProjectionDefinition<
  Document extends object,
  Payloads extends Readonly<Record<string, unknown>>,
> {
  /** `sub:<service>:<name>:v<n>`; `n` is the version of the read model. */
  readonly name: string;
  readonly readModel: ReadModel<Document>;
  /**
   * Applies in addition to the event types of `on`. Default: the category of the read model, `<bc>.<aggregate>.v<version>`;
   * name another one by `category`, or several by `streamPrefixes`.
   */
  readonly filter?: Omit<EventFilter, 'types'> | undefined;
  /** Handlers by event type. Handlers must be pure functions. */
  readonly on: { readonly [Type in keyof Payloads]: Apply<Document, Payloads[Type]> };
  /** Handles events with erased personal data. Default: the document does not change. */
  readonly onForgotten?: Apply<Document, Forgotten> | undefined;
  /** The document id. All events of a document come from one stream. Default: the id in the stream name. */
  readonly id?: ((event: ProjectedEvent) => string) | undefined;
  readonly batchSize?: number | undefined;
  readonly lanes?: number | undefined;
  readonly shards?: number | undefined;
  readonly retry?: BackoffPolicy | undefined;
  readonly timeoutMs?: number | undefined;
}

/** A validated definition with its defaults. */
export interface Projection<Document extends object = object> {
  readonly name: string;
  readonly readModel: ReadModel<Document>;
  readonly filter: EventFilter;
  readonly idOf: (event: ProjectedEvent) => string;
  apply(document: Document | null, event: ProjectedEvent): Document | null;
  readonly tuning: Pick<
    ProjectionDefinition<Document, Record<string, unknown>>,
    'batchSize' | 'lanes' | 'shards' | 'retry' | 'timeoutMs'
  >;
}

/**
 * Defines a projection; `startProjection` runs it, `rebuildProjection` builds a new version.
 *
 * @example
 * import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
 *
 * interface Account { readonly balance: number }
 *
 * const accounts = projection({
 *   name: 'sub:banking:accounts:v1',
 *   readModel: readModel<Account>({ bc: 'banking', aggregate: 'account', version: 1 }),
 *   on: {
 *     'account.opened.v1': () => ({ balance: 0 }),
 *     'account.credited.v1': (account, { payload }: ProjectedEvent<{ readonly amount: number }>) => ({
 *       balance: (account?.balance ?? 0) + payload.amount,
 *     }),
 *     'account.closed.v1': () => null,
 *   },
 * });
 */
export function projection<
  Document extends object,
  Payloads extends Readonly<Record<string, unknown>>,
>(definition: ProjectionDefinition<Document, Payloads>): Projection<Document> {
  const { name, readModel, on, onForgotten, id = idInStream } = definition;
  const { version } = parseSubscriptionName(name);
  const invalid = (reason: string): MillraceError =>
    new MillraceError('PROJECTION_INVALID', `${name}: ${reason}`, { details: { name } });
  const types = Object.keys(on);
  if (types.length === 0) throw invalid('`on` must have a handler for at least one event type');
  if (version !== readModel.version) {
    throw invalid(
      `version ${version} in the projection name differs from version ${readModel.version} of the read model`,
    );
  }
  const { bc, aggregate } = readModel;
  const filter: EventFilter = {
    ...(namesStreams(definition.filter ?? {})
      ? {}
      : { category: buildCategory<string, string>(bc, aggregate, version) }),
    ...definition.filter,
    types,
  };
  compileFilter(filter);
  const handlers = new Map<string, Apply<Document, unknown>>(
    Object.entries(on) as [string, Apply<Document, unknown>][],
  );
  const { batchSize, lanes, shards, retry, timeoutMs } = definition;
  return {
    name,
    readModel,
    filter,
    idOf: id,
    apply(document, event) {
      if (isForgotten(event.payload)) {
        const forgotten = event as ProjectedEvent<Forgotten>;
        return onForgotten === undefined ? document : onForgotten(document, forgotten);
      }
      const handler = handlers.get(event.type);
      if (handler === undefined) return document;
      const applied = handler(document, event);
      if (applied !== undefined) return applied;
      throw invalid(`the handler of '${event.type}' must return a document, or null to remove it`);
    },
    tuning: { batchSize, lanes, shards, retry, timeoutMs },
  };
}

/** `banking.currency.v1-core-USD` → `USD`; for other names, the aggregate id of the envelope. */
function idInStream({ stream, tenant, aggregate }: ProjectedEvent): string {
  const at = stream.indexOf('-');
  return at > 0 && stream.startsWith(`${tenant}-`, at + 1)
    ? stream.slice(at + tenant.length + 2)
    : aggregate.id;
}
