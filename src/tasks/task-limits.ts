// Defaults and limits of tasks, for all engines.

export const taskLimits = {
  /** Of a payload, an event's payload, and the result of a step or a job. NATS KV allows 1 MiB by default. */
  valueBytesMax: 256_000,
  /** The payload and the results of a job; events are refused when all values have this size. */
  jobBytesMax: 2_000_000,
  /** Steps, events and children of one job. */
  stepsMax: 1_000,
  stepNameCharsMax: 64,
  labelsMax: 16,
  labelCharsMax: 64,
  keyCharsMax: 200,
  workerCharsMax: 100,
  /** Entries of a job's history; the first few and the newest ones are kept. */
  historyMax: 50,
  errorCharsMax: 2_000,
  enqueueMax: 1_000,
  /** Items of one engine call. */
  batchMax: 100,
  /** Jobs with all their values that are read at once. */
  wholeJobsMax: 16,
  /** A page of jobs for an internal use ends with this size. */
  pageBytesMax: 4_194_304,
  priorityMin: 0,
  priorityMax: 9,
  priorityDefault: 5,
  workersDefault: 1,
  workersMax: 1_000,
  stepTimeoutMsDefault: 60_000,
  retriesDefault: 3,
  retriesMax: 1_000,
  leaseMsDefault: 15_000,
  leaseMsMin: 100,
  cancelDeadlineMsDefault: 30_000,
  claimWaitMsDefault: 5_000,
  waitMsMax: 600_000,
  /** How long ended jobs are kept. */
  retentionMsDefault: 30 * 86_400_000,
  durationMsMax: 366 * 86_400_000,
  childrenMax: 1_000,
  pageMax: 1_000,
  pageDefault: 100,
  /** Cached records of claimed jobs per process, and their size. */
  claimedJobsMax: 10_000,
  claimedJobsBytesMax: 16_777_216,
  retryMsFirst: 50,
  retryMsMax: 5_000,
} as const;
