export type { ConsumeOptions, Delivery } from './competing-consumers.ts';
export {
  kurrentdbEventStore,
  type KurrentdbEventStore,
  type KurrentdbOptions,
} from './kurrentdb-event-store.ts';
