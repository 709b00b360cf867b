export { bullmqWorkQueue, type BullmqWorkQueueOptions } from './bullmq-work-queue.ts';
export { bullmqDeliveryQueue, type BullmqQueueOptions } from './bullmq-delivery-queue.ts';
