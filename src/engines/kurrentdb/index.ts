export type { ConsumeOptions, Delivery } from './competing-consumers.ts';
export {
  kurrentdbEventStore,
  type KurrentdbEventStore,
  type KurrentdbOptions,
} from './event-store.ts';
