// The interface of the subjects of this benchmark: messages are enqueued, handled and settled.

import type { SampleMessage } from './sample-messages.ts';

export interface QueueSubject {
  readonly name: string;
  readonly open: (servers: QueueServers) => Promise<OpenedQueue>;
}

export interface QueueServers {
  /** The URL of a new, empty database on a server that syncs every commit. */
  postgres(): Promise<string>;
  /** The URL of a Redis with an append-only file that is synced every second. */
  redis(): Promise<string>;
}

export interface OpenedQueue {
  enqueue(messages: readonly SampleMessage[]): Promise<void>;
  /** Writes a message in an open transaction; the returned function commits it. */
  begin(message: SampleMessage): Promise<() => Promise<void>>;
  start(options: WorkOptions): Promise<QueueWorker>;
  /** Whether the subject has no work left. */
  isSettled(): Promise<boolean>;
  /** Discards the remaining messages. */
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
