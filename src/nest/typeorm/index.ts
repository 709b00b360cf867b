export { IntegrationOutboxEntity } from './integration-outbox-entity.ts';
export { OutboxStatus } from './outbox-status.ts';
export { typeormEventStore } from './typeorm-event-store.ts';
export {
  TYPEORM_OUTBOX_OPTIONS,
  TypeormOutboxRepository,
  type TypeormOutboxOptions,
  type TypeormTransaction,
} from './typeorm-outbox-repository.ts';
