// The part of a bus that topics use; the platform passes one in.

export interface TopicBusMessage {
  readonly id: string;
  readonly subject: string;
  readonly sequence: string;
  /** Orders messages of all subjects, on engines that have such an order. */
  readonly position: string | undefined;
  readonly storedAt: Date;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: unknown;
}

export interface TopicBusDelivery extends TopicBusMessage {
  nack(options: { readonly delayMs: number }): Promise<unknown>;
}

interface TopicBusReadOptions {
  readonly from?: 'start' | 'end' | { readonly time: Date } | { readonly sequence: string };
  readonly signal?: AbortSignal;
}

export interface TopicBus {
  publish(message: {
    readonly subject: string;
    readonly payload: unknown;
    readonly id: string;
    readonly headers?: Readonly<Record<string, string>> | undefined;
  }): Promise<unknown>;
  subscribe(
    pattern: string,
    options?: TopicBusReadOptions,
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

/** Orders the positions of messages, also across subjects: one number, or two (`1700000000000-3`). */
export function comparePositions(a: string, b: string): number {
  if (a === b) return 0;
  const [aFirst = '', aSecond = ''] = a.split('-');
  const [bFirst = '', bSecond = ''] = b.split('-');
  return compareNumbers(aFirst, bFirst) || compareNumbers(aSecond, bSecond);
}

/** Whole numbers as text without leading zeros: the longer text is the greater number. */
function compareNumbers(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
