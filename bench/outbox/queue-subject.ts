// What the subjects of this benchmark have in common: messages go in, a handler gets them, and they are
// settled.

import type { SampleMessage } from './sample-messages.ts';

export interface QueueSubject {
  readonly name: string;
  readonly open: (places: QueuePlaces) => Promise<OpenedQueue>;
}

export interface QueuePlaces {
  /** A new, empty database of a server that syncs every commit. */
  postgres(): Promise<string>;
  /** One Redis with an append-only file that is synced every second. */
  redis(): Promise<string>;
}

export interface OpenedQueue {
  enqueue(messages: readonly SampleMessage[]): Promise<void>;
  /** Writes one in a transaction that stays open; what it answers commits it. */
  begin(message: SampleMessage): Promise<() => Promise<void>>;
  start(options: WorkOptions): Promise<QueueWorker>;
  /** Whether the subject itself knows of nothing that is left to do. */
  isSettled(): Promise<boolean>;
  /** What is left is thrown away. */
  empty(): Promise<void>;
  close(): Promise<void>;
}

interface WorkOptions {
  readonly concurrency: number;
  readonly handle: (message: Pick<SampleMessage, 'tenantId'>) => void;
}

export interface QueueWorker {
  stop(): Promise<void>;
}
