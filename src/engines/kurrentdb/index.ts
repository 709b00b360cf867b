export type { ConsumeOptions, Delivery } from './competing-consumers.ts';
export {
  openKurrent,
  type KurrentdbEventStore,
  type KurrentEngine,
  type KurrentOptions,
} from './open-kurrent.ts';
