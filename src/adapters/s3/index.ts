export { s3ColdStorage, type S3Options } from './s3-cold-storage.ts';
export type { S3Keys } from './sign-request.ts';
