// The entity of the outbox document over the view `integration_outbox`: for queries, not for writing.

import { Column, CreateDateColumn, Entity, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import type { OutboxStatus as Status } from '../../outbox/outbox-message.ts';

/**
 * The statuses of a message: `OutboxStatus.SENT` as a value, `OutboxStatus` as a type.
 *
 * @example
 * import { IntegrationOutboxEntity, OutboxStatus } from 'millrace/nest/typeorm';
 * import type { DataSource } from 'typeorm';
 *
 * const deadMessages = (dataSource: DataSource) =>
 *   dataSource.getRepository(IntegrationOutboxEntity).findBy({ status: OutboxStatus.DEAD });
 */
export const OutboxStatus = {
  PENDING: 'PENDING',
  CLAIMED: 'CLAIMED',
  SENT: 'SENT',
  FAILED: 'FAILED',
  DEAD: 'DEAD',
  DISCARDED: 'DISCARDED',
} as const satisfies { readonly [S in Status]: S };

export type OutboxStatus = Status;

/**
 * A row of `core_outbox.integration_outbox`, with the properties of the outbox document. Read it with TypeORM, where
 * a missing value is null; send messages with `enqueue`, which returns the stored row, and `enqueueIn`. `synchronize`
 * and generated migrations ignore it, because the ledger migrates its schema.
 *
 * @example
 * import { IntegrationOutboxEntity } from 'millrace/nest/typeorm';
 * import { DataSource } from 'typeorm';
 *
 * const dataSource = new DataSource({
 *   type: 'postgres',
 *   url: 'postgres://localhost/shop',
 *   entities: [IntegrationOutboxEntity],
 * });
 * await dataSource.initialize();
 * const overdue = await dataSource
 *   .getRepository(IntegrationOutboxEntity)
 *   .createQueryBuilder('o')
 *   .where("o.status = 'PENDING' and o.dueAt < now() - interval '5 minutes'")
 *   .orderBy('o.dueAt')
 *   .getMany();
 */
export class IntegrationOutboxEntity {
  declare readonly id: string;
  declare readonly sourceStreamId: string;
  declare readonly sourceEventId: string;
  declare readonly integrationType: string;
  declare readonly eventType: string;
  declare readonly payload: Readonly<Record<string, unknown>>;
  declare readonly headers: Readonly<Record<string, unknown>> | null | undefined;
  declare readonly tenantId: string | null | undefined;
  declare readonly userId: string | null | undefined;
  declare readonly correlationId: string | null | undefined;
  declare readonly dueAt: Date;
  declare readonly attempts: number;
  declare readonly maxAttempts: number;
  declare readonly status: OutboxStatus;
  declare readonly lockedAt: Date | null | undefined;
  declare readonly lockedBy: string | null | undefined;
  declare readonly createdAt: Date;
  declare readonly updatedAt: Date;
  declare readonly sentAt: Date | null | undefined;
  declare readonly lastError: string | null | undefined;
}

const time = { type: 'timestamp with time zone' } as const;
const optional = { nullable: true } as const;
const text = (length: number) => ({ type: 'varchar', length }) as const;

// Decorators as function calls: Node strips types from these sources, but cannot strip decorators.
const columns: Readonly<Record<keyof IntegrationOutboxEntity, PropertyDecorator>> = {
  id: PrimaryColumn({ type: 'uuid' }),
  sourceStreamId: Column({ ...text(200), name: 'source_stream_id' }),
  sourceEventId: Column({ ...text(100), name: 'source_event_id' }),
  integrationType: Column({ ...text(120), name: 'integration_type' }),
  eventType: Column({ ...text(120), name: 'event_type' }),
  payload: Column({ type: 'jsonb' }),
  headers: Column({ type: 'jsonb', ...optional }),
  tenantId: Column({ ...text(60), ...optional, name: 'tenant_id' }),
  userId: Column({ ...text(60), ...optional, name: 'user_id' }),
  correlationId: Column({ ...text(120), ...optional, name: 'correlation_id' }),
  dueAt: Column({ ...time, default: () => 'now()', name: 'due_at' }),
  attempts: Column({ type: 'int', default: 0 }),
  maxAttempts: Column({ type: 'int', default: 10, name: 'max_attempts' }),
  status: Column({ ...text(20), default: OutboxStatus.PENDING }),
  lockedAt: Column({ ...time, ...optional, name: 'locked_at' }),
  lockedBy: Column({ ...text(120), ...optional, name: 'locked_by' }),
  createdAt: CreateDateColumn({ ...time, name: 'created_at' }),
  updatedAt: UpdateDateColumn({ ...time, name: 'updated_at' }),
  sentAt: Column({ ...time, ...optional, name: 'sent_at' }),
  lastError: Column({ type: 'text', ...optional, name: 'last_error' }),
};
for (const [property, decorate] of Object.entries(columns)) {
  decorate(IntegrationOutboxEntity.prototype, property);
}
Entity({ name: 'integration_outbox', schema: 'core_outbox', synchronize: false })(
  IntegrationOutboxEntity,
);
