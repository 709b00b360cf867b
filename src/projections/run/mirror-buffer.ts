// The buffer between the reader and the outlet: the reader never waits, memory is bounded, and dropped
// messages are counted.

import { aborted, type Clock } from '../../foundation/clock.ts';
import type { Observer } from '../../foundation/observer.ts';

export interface MirrorPost {
  readonly channel: string;
  /** The message as JSON. */
  readonly text: string;
}

/** The destination of mirrored events. Rejected messages are dropped without a retry. */
export interface MirrorOutlet {
  publish(posts: readonly MirrorPost[]): Promise<void>;
}

export interface MirrorBufferOptions {
  readonly bufferMax: number;
  readonly bufferCharsMax: number;
  readonly batchMax: number;
  readonly pauseMs: number;
  readonly clock: Clock;
  readonly observer: Observer;
}

export interface MirrorBuffer {
  readonly dropped: number;
  add(post: MirrorPost): void;
  /** Publishes until the signal fires, then drops the rest. */
  run(signal: AbortSignal): Promise<void>;
}

export function createMirrorBuffer(
  outlet: MirrorOutlet,
  options: MirrorBufferOptions,
): MirrorBuffer {
  const { bufferMax, bufferCharsMax, batchMax, pauseMs, clock, observer } = options;
  let waiting: MirrorPost[] = [];
  let head = 0;
  let chars = 0;
  let dropped = 0;
  let isFailing = false;
  let wake: (() => void) | undefined;

  const size = (): number => waiting.length - head;

  function shift(): MirrorPost | undefined {
    const post = waiting[head];
    if (post === undefined) return undefined;
    head += 1;
    chars -= post.text.length;
    if (head === waiting.length || head >= bufferMax) {
      waiting = waiting.slice(head);
      head = 0;
    }
    return post;
  }

  function drop(count: number): void {
    if (count === 0) return;
    dropped += count;
    observer.count?.('live_mirror_dropped_total', {}, count);
  }

  async function send(posts: readonly MirrorPost[], signal: AbortSignal): Promise<void> {
    const ended = Promise.withResolvers<void>();
    const end = (): void => ended.reject(aborted(signal));
    signal.addEventListener('abort', end, { once: true });
    try {
      // A hanging outlet must not delay the shutdown.
      await Promise.race([outlet.publish(posts), ended.promise]);
      observer.count?.('live_mirror_published_total', {}, posts.length);
      isFailing = false;
    } catch (err) {
      drop(posts.length);
      if (signal.aborted) return;
      // Log once per outage.
      if (!isFailing) observer.log?.warn({ err }, 'live mirror publish failed; dropping events');
      isFailing = true;
      await clock.sleep(pauseMs, signal).catch(() => undefined);
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  return {
    get dropped() {
      return dropped;
    },
    add(post) {
      waiting.push(post);
      chars += post.text.length;
      // Drop the oldest, because a user interface needs the newest.
      while (size() > bufferMax || (chars > bufferCharsMax && size() > 1)) {
        shift();
        drop(1);
      }
      wake?.();
    },
    async run(signal) {
      signal.addEventListener('abort', () => wake?.(), { once: true });
      while (!signal.aborted) {
        const posts: MirrorPost[] = [];
        while (posts.length < batchMax) {
          const post = shift();
          if (post === undefined) break;
          posts.push(post);
        }
        if (posts.length > 0) {
          await send(posts, signal);
          continue;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
      }
      drop(size());
      [waiting, head, chars] = [[], 0, 0];
    },
  };
}
