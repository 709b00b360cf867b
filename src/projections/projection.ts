// What a projection is: which events change which document of which read model, and how.

import { parseSubscriptionName } from '../contracts/subscription-name.ts';
import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import type { BackoffPolicy } from '../foundation/backoff.ts';
import { MillraceError } from '../foundation/error.ts';
import { isForgotten, type Forgotten } from '../store/erasure.ts';
import { compileFilter, type EventFilter } from '../store/event-filter.ts';
import type { ReadModel } from './read-model.ts';

/**
 * What a handler may know of an event: only what is the same whether it is projected in the append's
 * own transaction, a moment later, or in a rebuild years after.
 */
export type ProjectedEvent<Payload = unknown> = DomainEventEnvelope<Payload> & {
  readonly stream: string;
  readonly revision: number;
};

/** From the document as it was (null: there is none) to what it is now (null: it is removed). */
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
  /** Beside the types of `on`. */
  readonly filter?: Omit<EventFilter, 'types'> | undefined;
  /** By the event's type. Handlers depend on nothing but their arguments. */
  readonly on: { readonly [Type in keyof Payloads]: Apply<Document, Payloads[Type]> };
  /** For events whose person was forgotten. Default: the document stays as it is. */
  readonly onForgotten?: Apply<Document, Forgotten> | undefined;
  /** All events of one document come from one stream. Default: the id in the stream's name. */
  readonly id?: ((event: ProjectedEvent) => string) | undefined;
  readonly batchSize?: number | undefined;
  readonly lanes?: number | undefined;
  readonly shards?: number | undefined;
  readonly retry?: BackoffPolicy | undefined;
  readonly timeoutMs?: number | undefined;
}

/** As runners take it: checked, with its defaults. */
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
  if (types.length === 0) throw invalid('it handles no event');
  if (version !== readModel.version) {
    throw invalid(
      `it is of version ${version}, and its read model of version ${readModel.version}`,
    );
  }
  const filter: EventFilter = { ...definition.filter, types };
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
      throw invalid(`'${event.type}' must give a document, or null to remove it`);
    },
    tuning: { batchSize, lanes, shards, retry, timeoutMs },
  };
}

/** `banking.currency.v1-core-USD` → `USD`; of other names, what the envelope says. */
function idInStream({ stream, tenant, aggregate }: ProjectedEvent): string {
  const at = stream.indexOf('-');
  return at > 0 && stream.startsWith(`${tenant}-`, at + 1)
    ? stream.slice(at + tenant.length + 2)
    : aggregate.id;
}
