// The memory of responses that their clients have not read yet. Pages are loaded one after the other when there is no
// room, and the clients that have read nothing for longest are disconnected.

import { nextTurn } from '../../foundation/async/next-turn.ts';
import { whenAborted } from '../../foundation/async/when-aborted.ts';
import { aborted, systemClock, type Clock } from '../../foundation/clock.ts';
import { hasCode } from '../../foundation/error.ts';
import type { ReaderMemory } from '../../platform/modules/route.ts';
import { listPage } from './list-page.ts';

export interface ReaderLimits {
  /** For all clients of the process. */
  readonly processBytes: number;
  /** For all clients with the same credentials; without credentials: of the same address. */
  readonly principalBytes: number;
  /** Reserved while a page is loaded: then rows, events and their text are in memory. */
  readonly loadBytes: number;
  /** Without room, clients that have read nothing for this long are disconnected. */
  readonly stalledMs: number;
}

const readerLimits: ReaderLimits = {
  processBytes: 160 * 1_048_576,
  principalBytes: 64 * 1_048_576,
  loadBytes: 8 * 1_048_576,
  stalledMs: 1_000,
};

export interface ReaderBudget {
  /** The bytes in use, including reservations. */
  readonly used: number;
  /** The memory of one response or subscription, until it is disposed. */
  open(client: ReaderClient): ReaderMemory & Disposable;
}

interface ReaderClient {
  /** Clients with the same key share a limit. */
  readonly key: string;
  readonly signal: AbortSignal;
  readonly disconnect: () => void;
}

interface Reader {
  readonly client: ReaderClient;
  held: number;
  loads: number;
  /** The last time that the client read something, or got something to read. */
  activeAtMs: number;
}

interface Waiter {
  readonly reader: Reader;
  readonly start: () => void;
}

export function createReaderBudget(
  limits: ReaderLimits = readerLimits,
  clock: Clock = systemClock,
): ReaderBudget {
  const readers = new Set<Reader>();
  const waiters = new Set<Waiter>();
  const usedBy = new Map<string, number>();
  let used = 0;
  let watching: AbortController | undefined;

  const usedByKey = (key: string): number => usedBy.get(key) ?? 0;
  const isPrincipalFull = (key: string, wanted: number): boolean =>
    usedByKey(key) + wanted > limits.principalBytes;
  const fits = (key: string, wanted: number): boolean =>
    used + wanted <= limits.processBytes && !isPrincipalFull(key, wanted);

  function use({ client: { key } }: Reader, bytes: number): void {
    used += bytes;
    const total = usedByKey(key) + bytes;
    if (total === 0) usedBy.delete(key);
    else usedBy.set(key, total);
    if (bytes < 0) startWaiters();
    watch(key);
  }

  function startWaiters(): void {
    for (const waiter of waiters) {
      if (!fits(waiter.reader.client.key, limits.loadBytes)) continue;
      waiters.delete(waiter);
      waiter.start();
    }
  }

  const isOver = (): boolean =>
    used > limits.processBytes || [...usedBy.keys()].some((key) => isPrincipalFull(key, 0));

  /** Checks for stalled clients as long as there is no room. */
  function watch(key: string): void {
    if (used === 0 && waiters.size === 0) watching?.abort();
    if (watching !== undefined || (waiters.size === 0 && fits(key, 0))) return;
    watching = new AbortController();
    void check(watching.signal);
  }

  async function check(signal: AbortSignal): Promise<void> {
    try {
      while (waiters.size > 0 || isOver()) {
        await clock.sleep(limits.stalledMs, signal);
        // If the process was blocked, its sockets have not reported yet what their clients have read.
        await nextTurn();
        for (const { reader } of waiters) makeRoom(reader.client.key, limits.loadBytes);
        for (const key of usedBy.keys()) makeRoom(key, 0);
      }
    } catch (error) {
      if (!hasCode(error, 'ABORTED')) throw error;
    } finally {
      watching = undefined;
      // A load may have started to wait since the watch was aborted.
      if (waiters.size > 0) watch('');
    }
  }

  function makeRoom(key: string, wanted: number): void {
    if (fits(key, wanted)) return;
    const stalledBefore = clock.now() - limits.stalledMs;
    const stalled = [...readers]
      .filter(
        ({ held, loads, activeAtMs }) => held > 0 && loads === 0 && activeAtMs <= stalledBefore,
      )
      .toSorted((one, other) => one.activeAtMs - other.activeAtMs);
    for (const reader of stalled) {
      if (fits(key, wanted)) return;
      if (isPrincipalFull(key, wanted) && reader.client.key !== key) continue;
      close(reader);
      reader.client.disconnect();
    }
  }

  function close(reader: Reader): void {
    if (!readers.delete(reader)) return;
    use(reader, -reader.held);
  }

  async function whenRoom(reader: Reader): Promise<void> {
    const { key, signal } = reader.client;
    if (signal.aborted) throw aborted(signal);
    if (fits(key, limits.loadBytes)) return use(reader, limits.loadBytes);
    using stop = whenAborted(signal);
    let waiter: Waiter | undefined;
    const started = new Promise<void>((resolve) => {
      const start = (): void => {
        use(reader, limits.loadBytes);
        resolve();
      };
      waiter = { reader, start };
      waiters.add(waiter);
    });
    watch(key);
    await Promise.race([started, stop.aborted]);
    // If the client left, its turn may have come at the same moment.
    if (waiter === undefined || !waiters.delete(waiter)) return;
    watch(key);
    throw aborted(signal);
  }

  return {
    get used() {
      return used;
    },
    open(client) {
      const reader: Reader = { client, held: 0, loads: 0, activeAtMs: clock.now() };
      readers.add(reader);
      const load: ReaderMemory['load'] = async (work) => {
        await whenRoom(reader);
        reader.loads += 1;
        try {
          return await work();
        } finally {
          reader.loads -= 1;
          reader.activeAtMs = clock.now();
          use(reader, -limits.loadBytes);
        }
      };
      return {
        load,
        page: (bound, read) => load(() => listPage(bound, read)),
        hold(bytes) {
          if (!readers.has(reader)) return;
          const change = bytes - reader.held;
          reader.held = bytes;
          reader.activeAtMs = clock.now();
          if (change !== 0) use(reader, change);
        },
        [Symbol.dispose]: () => close(reader),
      };
    },
  };
}
