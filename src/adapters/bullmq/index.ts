export { bullmqDeliveryQueue, type BullmqQueueOptions } from './bullmq-delivery-queue.ts';
