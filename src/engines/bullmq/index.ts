export { bullmqDeliveryQueue, type BullmqQueueOptions } from './delivery-queue.ts';
export { bullmqWorkQueue, type BullmqWorkQueueOptions } from './work-queue.ts';
