// The part of a bus that topics stand on; the platform passes one in.

export interface TopicBusMessage {
  readonly id: string;
  readonly subject: string;
  readonly sequence: string;
  /** One order for all subjects, on engines that have one. */
  readonly position: string | undefined;
  readonly storedAt: Date;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: unknown;
}

export interface TopicBusDelivery extends TopicBusMessage {
  nack(options: { readonly delayMs: number }): Promise<unknown>;
}

interface TopicBusReadOptions {
  readonly from?: 'start' | 'now' | { readonly time: Date } | { readonly sequence: string };
  readonly signal?: AbortSignal;
}

/**
 * What readers may see: what is on the disk (`synced`); what is stored and has its place (`relaxed`), which a
 * loss of power within the next millisecond may take back; or, as ntfy has it, what this process is about to
 * store (`readers-first`), which also its own end takes back, and which nobody else may publish meanwhile. The
 * publisher is answered when it is on the disk, whichever it is.
 */
export type TopicDurability = 'synced' | 'relaxed' | 'readers-first';

export const topicDurabilities: readonly string[] = [
  'synced',
  'relaxed',
  'readers-first',
] satisfies readonly TopicDurability[];

/** A message that is not stored yet. */
export interface EarlyTopicMessage {
  readonly id: string;
  readonly subject: string;
  readonly payload: unknown;
}

export interface TopicBus {
  publish(message: {
    readonly subject: string;
    readonly payload: unknown;
    readonly id: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly durability?: TopicDurability;
  }): Promise<unknown>;
  /** Nobody else publishes to these subjects meanwhile, in no process. */
  claim(pattern: string): Promise<AsyncDisposable>;
  subscribe(
    pattern: string,
    options?: TopicBusReadOptions & {
      /** Told before it is stored; it comes once more when it is. */
      readonly onEarly?: (message: EarlyTopicMessage) => void;
    },
  ): Promise<{ batches(): AsyncIterable<readonly TopicBusMessage[]> } & AsyncDisposable>;
  read(pattern: string, options?: TopicBusReadOptions): AsyncIterable<TopicBusMessage>;
  stream(subject: string): Promise<{ readonly lastSequence: string | undefined } | undefined>;
  consume(
    definition: {
      readonly group: string;
      readonly subject: string;
      readonly leaseMs: number;
      readonly maxDeliveries: number;
      readonly maxAckPending: number;
    },
    handler: (delivery: TopicBusDelivery) => Promise<void>,
    options: { readonly concurrency: number; readonly maxInFlight: number },
  ): Promise<AsyncDisposable>;
}

/** Orders places of messages, also of several subjects: one number, or two (`1700000000000-3`). */
export function comparePlaces(a: string, b: string): number {
  if (a === b) return 0;
  const [aFirst = '', aSecond = ''] = a.split('-');
  const [bFirst = '', bSecond = ''] = b.split('-');
  return compareNumbers(aFirst, bFirst) || compareNumbers(aSecond, bSecond);
}

/** Whole numbers as text, without leading zeros: longer is greater. */
function compareNumbers(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
