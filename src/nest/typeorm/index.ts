export { typeormEventStore } from './event-store.ts';
export { IntegrationOutboxEntity, OutboxStatus } from './integration-outbox-entity.ts';
export {
  TYPEORM_OUTBOX_OPTIONS,
  TypeormOutboxRepository,
  type TypeormOutboxOptions,
  type TypeormTransaction,
} from './outbox-repository.ts';
