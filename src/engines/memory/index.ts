export { memoryEventStore } from './memory-event-store.ts';
