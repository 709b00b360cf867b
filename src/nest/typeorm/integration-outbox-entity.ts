// The outbox document's entity over its relation, which is a view here: for questions, not for writing.

import { Column, CreateDateColumn, Entity, PrimaryColumn, UpdateDateColumn } from 'typeorm';
import { OutboxStatus } from './outbox-status.ts';

/**
 * A row of `core_outbox.integration_outbox`, with the document's properties. Read it through TypeORM;
 * what is to be sent goes through `enqueue` and `enqueueIn`. `synchronize` and generated migrations
 * leave it alone: the ledger brings its schema by itself.
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
 * const late = await dataSource
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
  declare readonly headers: Readonly<Record<string, unknown>> | null;
  declare readonly tenantId: string | null;
  declare readonly userId: string | null;
  declare readonly correlationId: string | null;
  declare readonly dueAt: Date;
  declare readonly attempts: number;
  declare readonly maxAttempts: number;
  declare readonly status: OutboxStatus;
  declare readonly lockedAt: Date | null;
  declare readonly lockedBy: string | null;
  declare readonly createdAt: Date;
  declare readonly updatedAt: Date;
  declare readonly sentAt: Date | null;
  declare readonly lastError: string | null;
}

const time = { type: 'timestamp with time zone' } as const;
const optional = { nullable: true } as const;
const text = (length: number) => ({ type: 'varchar', length }) as const;

// Decorators as calls: Node runs these sources by stripping types, and strips no decorators.
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
