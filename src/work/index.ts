export type { KeyEntry, KeyOptions, KeyStore } from './key-store.ts';
export {
  workLimits,
  type Job,
  type JobHandler,
  type JobOutcome,
  type JobState,
  type NewJob,
  type WaitingJobs,
  type WorkOptions,
  type WorkQueue,
} from './work-queue.ts';
