// What providers of the application inject, by name. The same symbols in every copy of the package.

/**
 * The `EventStore` of the module; undefined where it has none.
 *
 * @example
 * import { Inject, Injectable } from '@nestjs/common';
 * import { EVENT_STORE } from 'millrace/nest';
 * import type { EventStore } from 'millrace/store';
 *
 * @Injectable()
 * export class Ledgers {
 *   constructor(@Inject(EVENT_STORE) readonly store: EventStore) {}
 * }
 */
export const EVENT_STORE = Symbol.for('millrace:event-store');

/**
 * The `OutboxLedger` of the module, also to be had as `OutboxRepository`; undefined where it has none.
 *
 * @example
 * import { Inject, Injectable } from '@nestjs/common';
 * import { OUTBOX_LEDGER } from 'millrace/nest';
 * import type { OutboxLedger } from 'millrace/outbox';
 *
 * @Injectable()
 * export class Replays {
 *   constructor(@Inject(OUTBOX_LEDGER) private readonly ledger: OutboxLedger) {}
 *
 *   all(): Promise<number> {
 *     return this.ledger.replay({});
 *   }
 * }
 */
export const OUTBOX_LEDGER = Symbol.for('millrace:outbox-ledger');

/**
 * The `OutboxDispatcher` of the module; undefined where nothing is delivered.
 *
 * @example
 * import { Inject, Injectable } from '@nestjs/common';
 * import { OUTBOX_DISPATCHER } from 'millrace/nest';
 * import type { OutboxDispatcher } from 'millrace/outbox';
 *
 * @Injectable()
 * export class Gauge {
 *   constructor(@Inject(OUTBOX_DISPATCHER) readonly dispatcher: OutboxDispatcher) {}
 * }
 */
export const OUTBOX_DISPATCHER = Symbol.for('millrace:outbox-dispatcher');

/**
 * The documents' logger: `@Inject('ILogger')` is the same.
 *
 * @example
 * import { Inject, Injectable } from '@nestjs/common';
 * import { ILOGGER, type ILogger } from 'millrace/nest';
 *
 * @Injectable()
 * export class Reports {
 *   constructor(@Inject(ILOGGER) private readonly logger: ILogger) {}
 *
 *   done(correlationId: string): void {
 *     this.logger.info({ correlationId, operation: 'REPORT', phase: 'SUCCESS' }, 'report written');
 *   }
 * }
 */
export const ILOGGER = 'ILogger';

export const MILLRACE_OPTIONS = Symbol.for('millrace:options');
