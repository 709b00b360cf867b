export type { MongoOptions } from './event-store.ts';
export { openMongo, type MongoEngine } from './open-mongo.ts';
