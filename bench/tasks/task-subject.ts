// What the subjects of this benchmark have in common: jobs go in, a handler gets them, and they are over.

import type { SampleMessage } from '../outbox/sample-messages.ts';

export interface TaskSubject {
  readonly name: string;
  /** Works off a few thousand a second. */
  readonly isSlow?: boolean;
  readonly open: (places: TaskPlaces) => Promise<OpenedTaskQueue>;
}

export interface TaskPlaces {
  /** A new, empty database of a server that syncs every commit. */
  postgres(): Promise<string>;
  /** One Redis with an append-only file that is synced every second. */
  redis(): Promise<string>;
  /** One NATS with JetStream on files, which it syncs every two minutes. */
  nats(): Promise<string>;
  /** A new file, whose every commit is synced. */
  sqlite(): Promise<string>;
}

export interface OpenedTaskQueue {
  enqueue(job: SampleMessage): Promise<unknown>;
  /** At most 1,000. */
  enqueueMany(jobs: readonly SampleMessage[]): Promise<unknown>;
  start(options: {
    readonly concurrency: number;
    readonly handle: (job: SampleMessage) => void;
  }): Promise<{ stop(): Promise<void> }>;
  /** Whether the subject itself knows of nothing that is left to do. */
  isSettled(): Promise<boolean>;
  close(): Promise<void>;
}
