import { parseStored } from '../../../foundation/parse-json.ts';
import { toSequence, type Position } from '../../../store/position.ts';
import type { Attempt } from '../../../subscriptions/dead-letter.ts';
import type { WaitingEvent, WaitingEvents } from '../../../subscriptions/subscription-storage.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { eachOf } from '../connection/engine.ts';
import { shardKeyspace, subscriptionKeyspace, subscriptionScripts as scripts } from './keyspace.ts';
import type { RunFenced } from './storage.ts';

export function redisWaiting(connection: RedisConnection, runFenced: RunFenced): WaitingEvents {
  return {
    async park(fence, streams) {
      const { leases, state, marks, blocked, waiting } = shardKeyspace(fence);
      const values = streams.flatMap(({ stream, due, events }) => [
        stream,
        due,
        events.length,
        ...events.flatMap((event) => [
          event.position,
          toSequence(event.position),
          waitingContent(event),
        ]),
      ]);
      const keys = [leases, state, marks, blocked, waiting];
      await runFenced(fence, scripts.park, keys, values);
    },
    due(key, nowMs, limit) {
      const { blocked } = shardKeyspace(key);
      return connection.ask((client) =>
        client.zrangebyscore(blocked, '-inf', nowMs, 'LIMIT', 0, limit),
      );
    },
    async next(key, stream, limit, after) {
      const { waiting } = shardKeyspace(key);
      const [first, to] = rangeOf(stream);
      const from = after === undefined ? first : `(${stream}\0${after}\u0001`;
      const members = await connection.ask((client) =>
        client.zrangebylex(waiting, from, to, 'LIMIT', 0, limit),
      );
      return members.map((member) => toWaiting(member.slice(stream.length + 1)));
    },
    async unblock(fence, stream) {
      const { leases, state, marks, blocked, waiting } = shardKeyspace(fence);
      const keys = [leases, state, marks, blocked, waiting];
      return (await runFenced(fence, scripts.unblock, keys, [stream])) === 1;
    },
    async count(subscription) {
      const { state } = subscriptionKeyspace(subscription);
      const shards = Number((await connection.ask((client) => client.hget(state, 'shards'))) ?? 0);
      const counts = await eachOf(
        Array.from({ length: shards }, (_, shard) => shardKeyspace({ subscription, shard })),
        ({ waiting }) => connection.ask((client) => client.zcard(waiting)),
      );
      return counts.reduce((sum, each) => sum + each, 0);
    },
    countOf(key, stream) {
      const { waiting } = shardKeyspace(key);
      return connection.ask((client) => client.zlexcount(waiting, ...rangeOf(stream)));
    },
  };
}

/** The events of one stream in the sorted set of its shard. */
function rangeOf(stream: string): [from: string, to: string] {
  return [`[${stream}\0`, `(${stream}\u0001`];
}

/** Without the stream and the position, which are the sort key. */
export function waitingContent({
  eventId,
  failures,
  history,
}: Pick<WaitingEvent, 'eventId' | 'failures' | 'history'>): string {
  return JSON.stringify({ eventId, failures, history });
}

function toWaiting(text: string): WaitingEvent {
  const [position = '', content = ''] = text.split('\0', 2);
  const stored = Object(parseStored(content)) as Partial<WaitingEvent>;
  const { eventId = '', failures = 0, history } = stored;
  const attempts: readonly Attempt[] = Array.isArray(history) ? history : [];
  return { position: position as Position, eventId, failures, history: attempts };
}
