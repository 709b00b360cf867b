export type { ConsumeOptions, Delivery } from './competing-consumers.ts';
export type { KurrentdbEventStore, KurrentOptions } from './event-store.ts';
export { openKurrent, type KurrentEngine } from './open-kurrent.ts';
