// Which consumer gets a message: the four strategies of the protocol. Pure.

export const strategyNames = [
  'DispatchToSingle',
  'RoundRobin',
  'Pinned',
  'PinnedByCorrelation',
] as const;

export type StrategyName = (typeof strategyNames)[number];

export interface Candidate {
  readonly id: string;
  /** How many more messages it takes now. */
  readonly room: number;
}

/** What a message is pinned by. */
export interface Pin {
  readonly stream: string;
  readonly correlation: string | undefined;
}

type Choice =
  | { readonly kind: 'consumer'; readonly id: string }
  /** Its own consumer has no room; other messages may still go elsewhere. */
  | { readonly kind: 'busy' }
  /** Nobody has room. */
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

/** The first with room, in turn. */
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

/** The one that came first, and another only while it has no room. */
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

/** Messages of one key go to one consumer as long as it stays. */
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

/** Evens the buckets out over the consumers; a bucket only moves where it must. */
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

/** FNV-1a. */
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
