// The interface of the subjects of this benchmark: jobs are enqueued, handled and completed.

import type { SampleMessage } from '../outbox/sample-messages.ts';

export interface TaskSubject {
  readonly name: string;
  /** Processes only a few thousand jobs per second. */
  readonly isSlow?: boolean | undefined;
  readonly open: (servers: TaskServers) => Promise<OpenedTaskQueue>;
}

export interface TaskServers {
  /** The URL of a new, empty database on a server that syncs every commit. */
  postgres(): Promise<string>;
  /** The URL of a Redis with an append-only file that is synced every second. */
  redis(): Promise<string>;
  /** The URL of a NATS with JetStream on files, which it syncs every two minutes. */
  nats(): Promise<string>;
  /** The path of a new file, with every commit synced. */
  sqlite(): Promise<string>;
}

export interface OpenedTaskQueue {
  enqueue(job: SampleMessage): Promise<unknown>;
  /** At most 1,000 jobs. */
  enqueueMany(jobs: readonly SampleMessage[]): Promise<unknown>;
  start(options: {
    readonly concurrency: number;
    readonly handle: (job: SampleMessage) => void;
  }): Promise<{ stop(): Promise<void> }>;
  /** Whether the subject has no work left. */
  isSettled(): Promise<boolean>;
  close(): Promise<void>;
}
