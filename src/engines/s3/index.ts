export { s3ColdStorage, type S3Keys, type S3Options } from './s3-cold-storage.ts';
