export { mongodbEventStore, type MongodbOptions } from './mongodb-event-store.ts';
