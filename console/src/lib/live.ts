// The one WebSocket of the console: it reports which topics changed, and follows events without gaps or duplicates.

import { useEffect, useRef, useSyncExternalStore } from 'react';
import { serverUrl, type ResponseOf } from './api.ts';

export type LiveEvent = ResponseOf<'GET /api/v1/events'>['items'][number];

export interface LiveStatus {
  readonly state: 'connecting' | 'offline' | 'open';
  /** Since when there is no connection. */
  readonly since: number | undefined;
}

export interface FollowFilter {
  readonly stream?: string | undefined;
  readonly types?: readonly string[] | undefined;
  readonly typePrefix?: string | undefined;
  readonly category?: string | undefined;
  readonly tenant?: string | undefined;
}

interface Follow {
  readonly filter: FollowFilter;
  readonly onEvents: (events: readonly LiveEvent[]) => void;
  /** Events that are not shown yet. */
  waiting: LiveEvent[];
  /** Where a new connection continues. */
  after: string;
}

interface Incoming {
  readonly type: string;
  readonly id?: string;
  readonly topic?: string;
  readonly position?: string;
  readonly event?: LiveEvent;
}

const notAuthenticated = 4401;
const deliverMs = 80;
const retryMsMin = 250;
const retryMsMax = 8_000;
/** A hidden tab disconnects after this time. */
const hiddenMs = 30_000;

function createLive() {
  const follows = new Map<string, Follow>();
  const watchers = new Set<() => void>();
  const listeners = new Set<() => void>();
  const ended = new Set<() => void>();
  let socket: WebSocket | undefined;
  let status: LiveStatus = { state: 'connecting', since: undefined };
  let retryMs = retryMsMin;
  let retryTimer: ReturnType<typeof setTimeout> | undefined;
  let hiddenTimer: ReturnType<typeof setTimeout> | undefined;
  let nextId = 1;
  let isWanted = false;

  function setStatus(next: LiveStatus): void {
    status = next;
    for (const listener of listeners) listener();
  }

  function send(message: object): void {
    if (status.state === 'open') socket?.send(JSON.stringify(message));
  }

  function sendFollow(id: string, { filter, after }: Follow): void {
    send({ type: 'subscribe', id, after, ...filter });
  }

  function connect(): void {
    clearTimeout(retryTimer);
    const url = new URL('ws', serverUrl);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const opened = new WebSocket(url, ['millrace.v1', 'millrace.console']);
    socket = opened;
    opened.addEventListener('message', ({ data }) => receive(JSON.parse(String(data)) as Incoming));
    opened.addEventListener('close', ({ code }) => {
      if (socket !== opened) return;
      socket = undefined;
      if (!isWanted) return;
      setStatus({ state: 'offline', since: status.since ?? Date.now() });
      if (code === notAuthenticated) for (const each of ended) each();
      retryTimer = setTimeout(connect, retryMs * (0.75 + Math.random() / 2));
      retryMs = Math.min(retryMs * 2, retryMsMax);
    });
  }

  function receive(message: Incoming): void {
    if (message.type === 'ready') {
      const wasOffline = status.since !== undefined;
      retryMs = retryMsMin;
      setStatus({ state: 'open', since: undefined });
      if (watchers.size > 0) send({ type: 'console.watch' });
      for (const [id, follow] of follows) sendFollow(id, follow);
      if (wasOffline) for (const watcher of watchers) watcher();
      return;
    }
    if (message.type === 'console.changed') {
      for (const watcher of watchers) watcher();
      return;
    }
    const follow = follows.get(message.id ?? '');
    if (follow === undefined) return;
    if (message.event !== undefined) {
      const { position, revision } = message.event;
      follow.after = follow.filter.stream === undefined ? position : String(revision);
      deliver(follow, message.event);
    } else if (message.position !== undefined && follow.filter.stream === undefined) {
      follow.after = message.position;
    }
  }

  /** Many events per second are shown a few times per second. */
  function deliver(follow: Follow, event: LiveEvent): void {
    follow.waiting.push(event);
    if (follow.waiting.length > 1) return;
    setTimeout(() => {
      const events = follow.waiting;
      follow.waiting = [];
      follow.onEvents(events);
    }, deliverMs);
  }

  function disconnect(): void {
    clearTimeout(retryTimer);
    const open = socket;
    socket = undefined;
    open?.close();
    setStatus({ state: 'connecting', since: undefined });
  }

  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiddenTimer);
    if (!isWanted) return;
    if (document.hidden) hiddenTimer = setTimeout(disconnect, hiddenMs);
    else if (socket === undefined) connect();
  });

  return {
    start(): void {
      if (isWanted) return;
      isWanted = true;
      connect();
    },
    stop(): void {
      isWanted = false;
      disconnect();
    },
    status: () => status,
    onStatus: (listener: () => void): (() => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    /** Calls the listener when the session was ended by the server. */
    onEnded(listener: () => void): () => void {
      ended.add(listener);
      return () => void ended.delete(listener);
    },
    watchOverview(watcher: () => void): () => void {
      watchers.add(watcher);
      if (watchers.size === 1) send({ type: 'console.watch' });
      return () => {
        watchers.delete(watcher);
        if (watchers.size === 0) send({ type: 'console.unwatch' });
      };
    },
    /** `after`: a position, of a stream a revision, or `end`. */
    follow(
      { filter, after }: { readonly filter: FollowFilter; readonly after: string },
      onEvents: Follow['onEvents'],
    ): () => void {
      const id = `f${nextId}`;
      nextId += 1;
      const follow: Follow = { filter, onEvents, waiting: [], after };
      follows.set(id, follow);
      sendFollow(id, follow);
      return () => {
        follows.delete(id);
        send({ type: 'unsubscribe', id });
      };
    },
  };
}

export const live = createLive();

export function useLiveStatus(): LiveStatus {
  return useSyncExternalStore(live.onStatus, live.status);
}

/** Follows the events after a position while the component is shown; `after` undefined: does not follow yet. */
export function useFollow(
  filter: FollowFilter,
  after: string | undefined,
  onEvents: (events: readonly LiveEvent[]) => void,
): void {
  const handler = useRef(onEvents);
  handler.current = onEvents;
  const start = useRef(after);
  start.current = after;
  const key = after === undefined ? undefined : JSON.stringify(filter);
  useEffect(() => {
    if (key === undefined) return undefined;
    const wanted = { filter: JSON.parse(key) as FollowFilter, after: start.current ?? 'end' };
    return live.follow(wanted, (events) => handler.current(events));
  }, [key]);
}
