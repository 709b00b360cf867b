export { IntegrationOutboxEntity, OutboxStatus } from './integration-outbox-entity.ts';
export { openTypeorm, type TypeormOptions } from './open-typeorm.ts';
export {
  TYPEORM_OUTBOX_OPTIONS,
  TypeormOutboxRepository,
  type TypeormOutboxOptions,
  type TypeormTransaction,
} from './outbox-repository.ts';
