// The four consumer strategies of the protocol, which choose the consumer of a message. Pure.

export const strategyNames = [
  'DispatchToSingle',
  'RoundRobin',
  'Pinned',
  'PinnedByCorrelation',
] as const;

export type StrategyName = (typeof strategyNames)[number];

export interface Candidate {
  readonly id: string;
  /** The number of messages that the consumer can receive now. */
  readonly room: number;
}

/** The keys by which pinned strategies choose. */
export interface Pin {
  readonly stream: string;
  readonly correlation: string | undefined;
}

type Choice =
  | { readonly kind: 'consumer'; readonly id: string }
  /** The consumer of this message has no room; other messages may still be sent. */
  | { readonly kind: 'busy' }
  /** No consumer has room. */
  | { readonly kind: 'full' };

export interface ConsumerStrategy {
  add(id: string): void;
  remove(id: string): void;
  choose(candidates: ReadonlyMap<string, Candidate>, pin: Pin): Choice;
}

export const bucketsCount = 1_024;

const full: Choice = { kind: 'full' };
const busy: Choice = { kind: 'busy' };

export function createStrategy(name: StrategyName): ConsumerStrategy {
  if (name === 'RoundRobin') return roundRobin();
  if (name === 'DispatchToSingle') return dispatchToSingle();
  return pinned(
    name === 'Pinned' ? ({ stream }) => stream : ({ stream, correlation }) => correlation ?? stream,
  );
}

/** The next consumer with room, in turn. */
function roundRobin(): ConsumerStrategy {
  const turn: string[] = [];
  return {
    add: (id) => void turn.push(id),
    remove: (id) => removeFrom(turn, id),
    choose(candidates) {
      for (let tries = turn.length; tries > 0; tries -= 1) {
        const id = turn.shift();
        if (id === undefined) return full;
        turn.push(id);
        if (hasRoom(candidates, id)) return { kind: 'consumer', id };
      }
      return full;
    },
  };
}

/** The consumer that connected first; others only while it has no room. */
function dispatchToSingle(): ConsumerStrategy {
  const order: string[] = [];
  return {
    add: (id) => void order.push(id),
    remove: (id) => removeFrom(order, id),
    choose(candidates) {
      const id = order.find((each) => hasRoom(candidates, each));
      return id === undefined ? full : { kind: 'consumer', id };
    },
  };
}

/** Messages with the same key go to the same consumer while it is connected. */
function pinned(keyOf: (pin: Pin) => string): ConsumerStrategy {
  const buckets: (string | undefined)[] = Array.from({ length: bucketsCount }, () => undefined);
  const consumers: string[] = [];
  return {
    add(id) {
      consumers.push(id);
      rebalance(buckets, consumers);
    },
    remove(id) {
      removeFrom(consumers, id);
      rebalance(buckets, consumers);
    },
    choose(candidates, pin) {
      const id = buckets[bucketOf(keyOf(pin))];
      if (id === undefined) return full;
      return hasRoom(candidates, id) ? { kind: 'consumer', id } : busy;
    },
  };
}

/** Distributes the buckets evenly over the consumers, and moves as few as possible. */
export function rebalance(buckets: (string | undefined)[], consumers: readonly string[]): void {
  const shareMax = consumers.length === 0 ? 0 : Math.ceil(buckets.length / consumers.length);
  const shares = new Map<string, number>(consumers.map((id) => [id, 0]));
  const free: number[] = [];
  for (const [index, id] of buckets.entries()) {
    const share = id === undefined ? undefined : shares.get(id);
    if (id === undefined || share === undefined || share >= shareMax) free.push(index);
    else shares.set(id, share + 1);
  }
  for (const index of free) {
    let least: string | undefined;
    for (const [id, share] of shares) {
      if (least === undefined || share < (shares.get(least) ?? 0)) least = id;
    }
    buckets[index] = least;
    if (least !== undefined) shares.set(least, (shares.get(least) ?? 0) + 1);
  }
}

/** FNV-1a hash of the key, as a bucket number. */
function bucketOf(key: string): number {
  let hash = 0x811c_9dc5;
  for (let index = 0; index < key.length; index += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x0100_0193);
  }
  return (hash >>> 0) % bucketsCount;
}

function hasRoom(candidates: ReadonlyMap<string, Candidate>, id: string): boolean {
  return (candidates.get(id)?.room ?? 0) > 0;
}

function removeFrom(list: string[], id: string): void {
  const at = list.indexOf(id);
  if (at !== -1) list.splice(at, 1);
}
