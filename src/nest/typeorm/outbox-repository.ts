// The PostgreSQL outbox ledger on the connection pool of a TypeORM DataSource.

import { Inject, Injectable, Optional } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import type { PostgresEngine, PostgresTransaction } from '../../engines/postgres/index.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import type { SubscriptionStorage } from '../../subscriptions/subscription-storage.ts';
import { OutboxRepository } from '../outbox-repository.ts';
import {
  checkIsPostgres,
  databaseOfPool,
  openTypeorm,
  type TypeormOptions,
} from './open-typeorm.ts';

export interface TypeormOutboxOptions extends Pick<
  TypeormOptions,
  'clock' | 'migrate' | 'observer' | 'outboxMaxAttempts' | 'prepare'
> {
  /** The PostgreSQL schema of the outbox. Default: `core_outbox`. */
  readonly schema?: string | undefined;
}

/** An EntityManager, or a transaction of the PostgreSQL ledger, such as the `pg` client of a projector. */
export type TypeormTransaction = EntityManager | PostgresTransaction;

type Ledger = OutboxLedger<PostgresTransaction>;

/**
 * The injection token for the options of a `TypeormOutboxRepository` that Nest creates.
 *
 * @example
 * import { OutboxRepository } from 'millrace/nest';
 * import { TYPEORM_OUTBOX_OPTIONS, TypeormOutboxRepository } from 'millrace/nest/typeorm';
 *
 * const providers = [
 *   { provide: TYPEORM_OUTBOX_OPTIONS, useValue: { migrate: 'off' } },
 *   { provide: OutboxRepository, useClass: TypeormOutboxRepository },
 * ];
 */
export const TYPEORM_OUTBOX_OPTIONS = Symbol.for('millrace:typeorm-outbox-options');

/** The methods that only wait until the ledger is open. */
const forwarded: Readonly<Record<Forwarded, true>> = {
  enqueue: true,
  enqueueMany: true,
  claimDueBatch: true,
  markSent: true,
  markFailed: true,
  deadLetter: true,
  release: true,
  settle: true,
  renew: true,
  extend: true,
  whenDue: true,
  find: true,
  getAttempts: true,
  attemptLog: true,
  bySource: true,
  erase: true,
  list: true,
  counts: true,
  replay: true,
  retryNow: true,
  discard: true,
  purge: true,
  archive: true,
  pause: true,
  resume: true,
  paused: true,
};
type Forwarded = Exclude<
  keyof Ledger,
  'capabilities' | 'database' | 'enqueueIn' | typeof Symbol.asyncDispose
>;

/** The static block below implements its methods. */
const Repository = OutboxRepository as abstract new () => OutboxLedger<TypeormTransaction>;

/**
 * The repository of the outbox document: the whole ledger on the pool of the DataSource. A dispatcher keeps one
 * connection for notifications. `enqueueIn` takes the EntityManager of a transaction. The ledger opens with the
 * first call, which requires an initialised DataSource.
 *
 * @example
 * import { TypeormOutboxRepository } from 'millrace/nest/typeorm';
 * import type { DataSource } from 'typeorm';
 *
 * async function pay(dataSource: DataSource, outbox: TypeormOutboxRepository, orderId: string) {
 *   await dataSource.transaction(async (manager) => {
 *     await manager.query('update orders set paid = true where id = $1', [orderId]);
 *     await outbox.enqueueIn(manager, [
 *       {
 *         sourceStreamId: `orders-${orderId}`,
 *         sourceEventId: `${orderId}-paid`,
 *         integrationType: 'webhook:partner-x',
 *         eventType: 'order.paid.v1',
 *         payload: { orderId },
 *       },
 *     ]);
 *   });
 * }
 */
export class TypeormOutboxRepository extends Repository {
  static {
    for (const name of Object.keys(forwarded) as Forwarded[]) {
      Object.defineProperty(this.prototype, name, {
        configurable: true,
        writable: true,
        async value(this: TypeormOutboxRepository, ...given: never) {
          const ledger = await this.#ledger();
          return Reflect.apply(ledger[name], ledger, given);
        },
      });
    }
  }

  override readonly capabilities = {
    durable: true,
    crossProcess: true,
    callerTransaction: true,
  } as const;
  readonly #dataSource: DataSource;
  readonly #options: TypeormOutboxOptions;
  #opening: Promise<PostgresEngine> | undefined;
  #checkpoints: PostgresEngine | undefined;
  #isClosed = false;

  constructor(dataSource: DataSource, options: TypeormOutboxOptions = {}) {
    super();
    checkIsPostgres(dataSource);
    this.#dataSource = dataSource;
    this.#options = options;
  }

  /** Undefined before the DataSource is initialised. */
  override get database(): string | undefined {
    return this.#dataSource.isInitialized ? databaseOfPool(this.#dataSource) : undefined;
  }

  override async enqueueIn(
    transaction: TypeormTransaction,
    items: Parameters<Ledger['enqueueIn']>[1],
  ): ReturnType<Ledger['enqueueIn']> {
    const client = isEntityManager(transaction) ? queriesOf(transaction) : transaction;
    return (await this.#ledger()).enqueueIn(client, items);
  }

  /**
   * Checkpoints and dead letters in the same database, in the schema `millrace`, which the first call creates: for
   * projectors of an event store without them, such as KurrentDB.
   */
  async subscriptions(): Promise<SubscriptionStorage<ClientBase>> {
    const options = { ...this.#options, schema: undefined, roles: ['store'] } as const;
    this.#checkpoints ??= await openTypeorm(this.#dataSource, options);
    return this.#checkpoints.subscriptions;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#checkpoints?.[Symbol.asyncDispose]();
    // An engine that failed to open needs no closing.
    const engine = await this.#opening?.catch(() => undefined);
    await engine?.[Symbol.asyncDispose]();
  }

  async #ledger(): Promise<Ledger> {
    if (this.#isClosed) throw new MillraceError('STORE_CLOSED', 'the outbox was closed');
    this.#opening ??= openOutbox(this.#dataSource, this.#options).catch((error: unknown) => {
      // The next call tries again after an outage.
      this.#opening = undefined;
      throw error;
    });
    return (await this.#opening).outbox;
  }
}

// For `{ provide: OutboxRepository, useClass: TypeormOutboxRepository }`.
Injectable()(TypeormOutboxRepository);
Inject(DataSource)(TypeormOutboxRepository, undefined, 0);
Inject(TYPEORM_OUTBOX_OPTIONS)(TypeormOutboxRepository, undefined, 1);
Optional()(TypeormOutboxRepository, undefined, 1);

function openOutbox(
  dataSource: DataSource,
  { schema: outboxSchema, ...options }: TypeormOutboxOptions,
): Promise<PostgresEngine> {
  return openTypeorm(dataSource, { ...options, outboxSchema, roles: ['outbox'] });
}

function isEntityManager(transaction: TypeormTransaction): transaction is EntityManager {
  return typeof transaction === 'object' && 'getRepository' in transaction;
}

/** Outside a transaction every statement would commit by itself. */
function queriesOf(manager: EntityManager): PostgresTransaction {
  if (manager.queryRunner?.isTransactionActive !== true) {
    throw new MillraceError(
      'OUTBOX_INVALID',
      'enqueueIn needs the EntityManager of an open transaction: dataSource.transaction(async (manager) => …)',
      { details: { field: 'transaction' } },
    );
  }
  return (sql, values) => manager.query(sql, [...values]);
}
