// The document's enum without an enum: `OutboxStatus.SENT` as a value, `OutboxStatus` as a type.

import type { OutboxStatus as Status } from '../../outbox/outbox-message.ts';

/**
 * The statuses of a message.
 *
 * @example
 * import { IntegrationOutboxEntity, OutboxStatus } from 'millrace/nest/typeorm';
 * import type { DataSource } from 'typeorm';
 *
 * const deadOnes = (dataSource: DataSource) =>
 *   dataSource.getRepository(IntegrationOutboxEntity).findBy({ status: OutboxStatus.DEAD });
 */
export const OutboxStatus = {
  PENDING: 'PENDING',
  CLAIMED: 'CLAIMED',
  SENT: 'SENT',
  FAILED: 'FAILED',
  DEAD: 'DEAD',
} as const satisfies { readonly [S in Status]: S };

export type OutboxStatus = Status;
