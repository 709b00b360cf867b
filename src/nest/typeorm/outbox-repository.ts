// The PostgreSQL outbox ledger on the connection pool of a TypeORM DataSource.

import { Inject, Injectable, Optional } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import {
  postgresOutboxLedger,
  type PostgresOutboxOptions,
  type PostgresTransaction,
} from '../../engines/postgres/index.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import { OutboxRepository } from '../outbox-repository.ts';
import { checkIsPostgres, poolOf } from './event-store.ts';

export type TypeormOutboxOptions = Omit<PostgresOutboxOptions, 'connectionsMax'>;

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
export class TypeormOutboxRepository extends OutboxRepository<TypeormTransaction> {
  readonly capabilities = {
    durable: true,
    crossProcess: true,
    callerTransaction: true,
  } as const;
  readonly #dataSource: DataSource;
  readonly #options: TypeormOutboxOptions;
  #opening: Promise<Ledger> | undefined;
  #isClosed = false;

  constructor(dataSource: DataSource, options: TypeormOutboxOptions = {}) {
    super();
    checkIsPostgres(dataSource);
    this.#dataSource = dataSource;
    this.#options = options;
  }

  override async enqueueIn(
    transaction: TypeormTransaction,
    items: Parameters<Ledger['enqueueIn']>[1],
  ): ReturnType<Ledger['enqueueIn']> {
    const client = isEntityManager(transaction) ? queriesOf(transaction) : transaction;
    return (await this.#ledger()).enqueueIn(client, items);
  }

  override async enqueue(...given: Parameters<Ledger['enqueue']>): ReturnType<Ledger['enqueue']> {
    return (await this.#ledger()).enqueue(...given);
  }

  override async enqueueMany(
    ...given: Parameters<Ledger['enqueueMany']>
  ): ReturnType<Ledger['enqueueMany']> {
    return (await this.#ledger()).enqueueMany(...given);
  }

  override async claimDueBatch(
    ...given: Parameters<Ledger['claimDueBatch']>
  ): ReturnType<Ledger['claimDueBatch']> {
    return (await this.#ledger()).claimDueBatch(...given);
  }

  override async markSent(
    ...given: Parameters<Ledger['markSent']>
  ): ReturnType<Ledger['markSent']> {
    return (await this.#ledger()).markSent(...given);
  }

  override async markFailed(
    ...given: Parameters<Ledger['markFailed']>
  ): ReturnType<Ledger['markFailed']> {
    return (await this.#ledger()).markFailed(...given);
  }

  override async deadLetter(
    ...given: Parameters<Ledger['deadLetter']>
  ): ReturnType<Ledger['deadLetter']> {
    return (await this.#ledger()).deadLetter(...given);
  }

  override async release(...given: Parameters<Ledger['release']>): ReturnType<Ledger['release']> {
    return (await this.#ledger()).release(...given);
  }

  override async settle(...given: Parameters<Ledger['settle']>): ReturnType<Ledger['settle']> {
    return (await this.#ledger()).settle(...given);
  }

  override async exchange(
    ...given: Parameters<Ledger['exchange']>
  ): ReturnType<Ledger['exchange']> {
    return (await this.#ledger()).exchange(...given);
  }

  override async renew(...given: Parameters<Ledger['renew']>): ReturnType<Ledger['renew']> {
    return (await this.#ledger()).renew(...given);
  }

  override async extend(...given: Parameters<Ledger['extend']>): ReturnType<Ledger['extend']> {
    return (await this.#ledger()).extend(...given);
  }

  override async whenDue(...given: Parameters<Ledger['whenDue']>): ReturnType<Ledger['whenDue']> {
    return (await this.#ledger()).whenDue(...given);
  }

  override async find(...given: Parameters<Ledger['find']>): ReturnType<Ledger['find']> {
    return (await this.#ledger()).find(...given);
  }

  override async bySource(
    ...given: Parameters<Ledger['bySource']>
  ): ReturnType<Ledger['bySource']> {
    return (await this.#ledger()).bySource(...given);
  }

  override async list(...given: Parameters<Ledger['list']>): ReturnType<Ledger['list']> {
    return (await this.#ledger()).list(...given);
  }

  override async counts(): ReturnType<Ledger['counts']> {
    return (await this.#ledger()).counts();
  }

  override async replay(...given: Parameters<Ledger['replay']>): ReturnType<Ledger['replay']> {
    return (await this.#ledger()).replay(...given);
  }

  override async purge(...given: Parameters<Ledger['purge']>): ReturnType<Ledger['purge']> {
    return (await this.#ledger()).purge(...given);
  }

  override async archive(...given: Parameters<Ledger['archive']>): ReturnType<Ledger['archive']> {
    return (await this.#ledger()).archive(...given);
  }

  override async pause(...given: Parameters<Ledger['pause']>): ReturnType<Ledger['pause']> {
    return (await this.#ledger()).pause(...given);
  }

  override async resume(...given: Parameters<Ledger['resume']>): ReturnType<Ledger['resume']> {
    return (await this.#ledger()).resume(...given);
  }

  override async paused(): ReturnType<Ledger['paused']> {
    return (await this.#ledger()).paused();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    // A ledger that failed to open needs no closing.
    const ledger = await this.#opening?.catch(() => undefined);
    await ledger?.[Symbol.asyncDispose]();
  }

  async #ledger(): Promise<Ledger> {
    if (this.#isClosed) throw new MillraceError('STORE_CLOSED', 'the outbox was closed');
    this.#opening ??= openLedger(this.#dataSource, this.#options).catch((error: unknown) => {
      // The next call tries again after an outage.
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }
}

// For `{ provide: OutboxRepository, useClass: TypeormOutboxRepository }`.
Injectable()(TypeormOutboxRepository);
Inject(DataSource)(TypeormOutboxRepository, undefined, 0);
Inject(TYPEORM_OUTBOX_OPTIONS)(TypeormOutboxRepository, undefined, 1);
Optional()(TypeormOutboxRepository, undefined, 1);

async function openLedger(dataSource: DataSource, options: TypeormOutboxOptions): Promise<Ledger> {
  return postgresOutboxLedger(poolOf(dataSource), options);
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
