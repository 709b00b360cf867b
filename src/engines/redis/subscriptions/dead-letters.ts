// Dead letters in Redis: the fields of each letter in one HASH of its subscription, and two ZSETs of the letters by time,
// of which one has only the pending ones.

import { redisKeys } from '../../../contracts/redis-keys.ts';
import { batchesOf } from '../../../foundation/async/batches-of.ts';
import { jsonText, parseStored } from '../../../foundation/parse-json.ts';
import { toPosition, toSequence } from '../../../store/position.ts';
import {
  addedLetter,
  matchesFilter,
  type Attempt,
  type DeadLetter,
  type DeadLetterFilter,
  type NewDeadLetter,
} from '../../../subscriptions/dead-letter.ts';
import type { DeadLetterStore } from '../../../subscriptions/subscription-storage.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { eachOf, pairsOf } from '../connection/engine.ts';
import { shardKeyspace, subscriptionKeyspace, subscriptionScripts as scripts } from './keyspace.ts';
import type { RunFenced } from './storage.ts';
import { waitingContent } from './waiting.ts';

const pageSize = 100;
/** Letters per read whose payloads are dropped. */
const readItems = 4;

interface ReadOptions {
  readonly after?: DeadLetter | undefined;
  readonly withoutPayloads?: boolean | undefined;
}

/** `body` has what never changes, as JSON. The last five are also fields, so that a letter with a damaged body can be replayed. */
const fieldNames = [
  'body',
  'error',
  'cause',
  'attempts',
  'status',
  'parked',
  'history',
  'notes',
  'replayedAtMs',
  'replayedBy',
  'replayRequestedAtMs',
  'discardedAtMs',
  'discardedBy',
  'discardReason',
  'id',
  'stream',
  'shard',
  'position',
  'createdAtMs',
] as const;

type Body = Omit<NewDeadLetter, 'error' | 'cause' | 'attempts' | 'parked' | 'history'>;

export function redisDeadLetters(
  connection: RedisConnection,
  runFenced: RunFenced,
): DeadLetterStore {
  const { run } = connection;
  const names = () => connection.ask((client) => client.smembers(redisKeys.subscriptions()));

  /** In the order of the event ids; undefined without a letter. */
  async function read(
    handler: string,
    eventIds: readonly string[],
  ): Promise<readonly (DeadLetter | undefined)[]> {
    if (eventIds.length === 0) return [];
    const { letters } = subscriptionKeyspace(handler);
    const fields = eventIds.flatMap((eventId) => fieldNames.map((name) => `${eventId}:${name}`));
    const cells = await connection.ask((client) => client.hmget(letters, ...fields));
    return eventIds.map((eventId, at) =>
      toLetter(
        { handler, eventId },
        cells.slice(at * fieldNames.length, (at + 1) * fieldNames.length),
      ),
    );
  }

  async function byIds(handler: string, ids: readonly string[]): Promise<readonly DeadLetter[]> {
    if (ids.length === 0) return [];
    const { letterIds } = subscriptionKeyspace(handler);
    const eventIds = await connection.ask((client) => client.hmget(letterIds, ...ids));
    const found = await read(
      handler,
      eventIds.filter((each) => each !== null),
    );
    return found.filter((each) => each !== undefined);
  }

  async function get(id: string): Promise<DeadLetter | undefined> {
    const found = await eachOf(await names(), (handler) => byIds(handler, [id]));
    return found.flat()[0];
  }

  /** The letters of one subscription, oldest first, after `after`. */
  async function* lettersOf(
    handler: string,
    filter: DeadLetterFilter,
    { after, withoutPayloads = false, size }: ReadOptions & { readonly size: number },
  ): AsyncGenerator<DeadLetter> {
    const { ids, eventIds, status } = filter;
    if (ids !== undefined || eventIds !== undefined) {
      const found =
        ids === undefined ? await read(handler, eventIds ?? []) : await byIds(handler, ids);
      yield* [
        ...new Map(found.flatMap((each) => (each ? [[each.id, each] as const] : []))).values(),
      ]
        .filter((each) => after === undefined || isBefore(after, each))
        .toSorted((a, b) => (isBefore(a, b) ? -1 : 1));
      return;
    }
    const { lettersByTime, lettersPending } = subscriptionKeyspace(handler);
    const key = status === 'pending' ? lettersPending : lettersByTime;
    let last: { readonly atMs: number; readonly member: string } = {
      atMs: after === undefined ? 0 : Date.parse(after.createdAt),
      member: after === undefined ? '' : `${after.id} ${after.eventId}`,
    };
    for (let offset = 0; ;) {
      const { atMs, member } = last;
      const cells = await connection.ask((client) =>
        client.zrangebyscore(key, atMs, '+inf', 'WITHSCORES', 'LIMIT', offset, size),
      );
      const page = pairsOf(cells)
        .map(([each, score]) => ({ member: each, atMs: Number(score) }))
        .filter((each) => each.atMs > atMs || each.member > member);
      // More letters of one millisecond than a page has.
      offset = page.length === 0 ? offset + size : 0;
      last = page.at(-1) ?? last;
      const found = page.map((each) => each.member.slice(each.member.indexOf(' ') + 1));
      // The payloads of few letters are in memory at once, if the caller does not want them.
      for (const some of batchesOf(found, { countMax: withoutPayloads ? readItems : size })) {
        for (const letter of await read(handler, some)) {
          if (letter !== undefined) yield withoutPayloads ? { ...letter, payload: null } : letter;
        }
      }
      if (cells.length < 2 * size) return;
    }
  }

  async function find(filter: DeadLetterFilter, limit: number, options: ReadOptions = {}) {
    const handlers = filter.handler === undefined ? await names() : [filter.handler];
    // Letters may be large: never more at once than the caller wants.
    const size = Math.min(pageSize, limit);
    const found = await eachOf(handlers, async (handler) => {
      const letters: DeadLetter[] = [];
      for await (const letter of lettersOf(handler, filter, { ...options, size })) {
        if (matchesFilter(letter, filter)) letters.push(letter);
        if (letters.length === limit) break;
      }
      return letters;
    });
    return found
      .flat()
      .toSorted((a, b) => (isBefore(a, b) ? -1 : 1))
      .slice(0, limit);
  }

  /** Page by page, with one commit per dead letter, so that the number of dead letters does not matter. */
  async function eachPending(
    filter: DeadLetterFilter,
    change: (letter: DeadLetter) => Promise<unknown>,
  ): Promise<number> {
    if (filter.status !== undefined && filter.status !== 'pending') return 0;
    let count = 0;
    let after: DeadLetter | undefined;
    for (;;) {
      const page = await find({ ...filter, status: 'pending' }, pageSize, {
        after,
        withoutPayloads: true,
      });
      for (const letter of page) if ((await change(letter)) === 1) count += 1;
      after = page.at(-1);
      if (after === undefined) return count;
    }
  }

  return {
    async add(fence, letter) {
      const { leases, state, marks, blocked, waiting, ...keys } = shardKeyspace(fence);
      const { letters, letterIds, lettersByTime, lettersPending } = keys;
      for (;;) {
        const [before] = await read(fence.subscription, [letter.eventId]);
        const added = addedLetter(letter, before);
        const reply = await runFenced(
          fence,
          scripts.addLetter,
          [
            leases,
            state,
            marks,
            blocked,
            waiting,
            letters,
            letterIds,
            lettersByTime,
            lettersPending,
          ],
          [
            added.id,
            before === undefined ? 1 : 0,
            Date.parse(added.createdAt),
            letter.eventId,
            letter.stream,
            letter.position,
            toSequence(letter.position),
            letter.parked ? parkedContent(letter) : '',
            ...fieldsOf(added, before === undefined),
          ],
        );
        if (reply === 'changed') continue;
        const isNew = (before?.replayRequestedAt ?? null) === null;
        return { letter: added, isNew };
      }
    },
    get,
    async list(filter, { limit = 100, after, withoutPayloads = false } = {}) {
      const last = after === undefined ? undefined : await get(after);
      return find(filter, limit, { after: last, withoutPayloads });
    },
    async count(filter) {
      const { handler, status, ...rest } = filter;
      if (handler !== undefined && status === 'pending' && Object.keys(rest).length === 0) {
        const { lettersPending } = subscriptionKeyspace(handler);
        return connection.ask((client) => client.zcard(lettersPending));
      }
      return (await find(filter, Number.MAX_SAFE_INTEGER, { withoutPayloads: true })).length;
    },
    replay: (filter, { by, atMs }) =>
      eachPending(filter, (letter) => {
        const { letters, blocked, waiting } = keysOf(letter);
        const { eventId, stream, position } = letter;
        const values = [eventId, by, atMs, stream, position, parkedContent(letter)];
        return run(scripts.replayLetter, [letters, blocked, waiting], values);
      }),
    discard: (filter, { by, reason, atMs }) =>
      eachPending(filter, (letter) => {
        const { letters, lettersPending, blocked, waiting } = keysOf(letter);
        const { eventId, stream, position } = letter;
        const values = [eventId, by, atMs, reason, stream, position];
        return run(scripts.discardLetter, [letters, lettersPending, blocked, waiting], values);
      }),
    async note(id, notes) {
      const letter = await get(id);
      if (letter === undefined) return false;
      const { letters, letterIds } = subscriptionKeyspace(letter.handler);
      return (await run(scripts.noteLetter, [letters, letterIds], [id, notes])) === 1;
    },
  };
}

function keysOf({ handler, shard }: DeadLetter): ReturnType<typeof shardKeyspace> {
  return shardKeyspace({ subscription: handler, shard });
}

function parkedContent({ eventId }: NewDeadLetter): string {
  return waitingContent({ eventId, failures: 0, history: [] });
}

function fieldsOf(letter: DeadLetter, isFirst: boolean): string[] {
  const { error, cause, status, attempts, parked, history } = letter;
  const changing: Record<string, string> = {
    error,
    cause: JSON.stringify(cause),
    status,
    attempts: String(attempts),
    parked: parked ? '1' : '0',
    history: JSON.stringify(history),
  };
  if (!isFirst) return Object.entries(changing).flat();
  const { id, shard, stream, position, createdAt } = letter;
  const body: Body = {
    id,
    eventId: letter.eventId,
    eventType: letter.eventType,
    aggregateId: letter.aggregateId,
    payload: letter.payload,
    createdAt,
    handler: letter.handler,
    shard,
    tenant: letter.tenant,
    correlationId: letter.correlationId,
    stream,
    revision: letter.revision,
    position,
  };
  return Object.entries({
    ...changing,
    body: jsonText(body),
    notes: '',
    id,
    stream,
    shard: String(shard),
    position: String(toSequence(position)),
    createdAtMs: String(Date.parse(createdAt)),
  }).flat();
}

function toLetter(
  of: Pick<DeadLetter, 'handler' | 'eventId'>,
  cells: readonly (string | null)[],
): DeadLetter | undefined {
  const fields = Object.fromEntries(fieldNames.map((name, at) => [name, cells[at] ?? null]));
  const text = (name: (typeof fieldNames)[number]): string | null => fields[name] ?? null;
  const time = (name: (typeof fieldNames)[number]): string | null => {
    const atMs = text(name);
    return atMs === null ? null : new Date(Number(atMs)).toISOString();
  };
  const json = text('body');
  if (json === null) return undefined;
  const body = parseStored(json) as Body | undefined;
  const history = parseStored(text('history'));
  const error = text('error') ?? '';
  return {
    ...(body ?? {
      ...of,
      id: text('id') ?? '',
      eventType: '',
      aggregateId: '',
      payload: null,
      createdAt: time('createdAtMs') ?? new Date(0).toISOString(),
      shard: Number(text('shard')),
      tenant: '',
      correlationId: '',
      stream: text('stream') ?? '',
      revision: 0,
      position: toPosition(Number(text('position'))),
    }),
    error: body === undefined ? `${error} (the stored payload is damaged)` : error,
    cause: (parseStored(text('cause')) ?? null) as DeadLetter['cause'],
    attempts: Number(text('attempts')),
    status: text('status') as DeadLetter['status'],
    parked: text('parked') === '1',
    history: Array.isArray(history) ? (history as readonly Attempt[]) : [],
    notes: text('notes') ?? '',
    replayedAt: time('replayedAtMs'),
    replayedBy: text('replayedBy'),
    replayRequestedAt: time('replayRequestedAtMs'),
    discardedAt: time('discardedAtMs'),
    discardedBy: text('discardedBy'),
    discardReason: text('discardReason'),
  };
}

function isBefore(a: DeadLetter, b: DeadLetter): boolean {
  const [one, other] = [Date.parse(a.createdAt), Date.parse(b.createdAt)];
  return one === other ? a.id < b.id : one < other;
}
