export { mongodbEventStore, type MongodbOptions } from './event-store.ts';
