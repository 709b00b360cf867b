// Writes of the owner of a shard. On a replica set they are one transaction, which fails once another owner took over.
// Elsewhere each write is separate: the callers order them so that a crash repeats an event, but never loses one.

import type { ClientSession, Db } from 'mongodb';
import { MillraceError } from '../../../foundation/error.ts';
import {
  leaseLost,
  type Fence,
  type ShardKey,
} from '../../../subscriptions/subscription-storage.ts';
import { codeOf } from '../connection.ts';
import { shardIdOf, type SubscriptionCollections } from './collections.ts';

/** Undefined: the server has no transactions. */
export type Session = ClientSession | undefined;

interface OpenTransaction {
  readonly session: ClientSession;
  /** Checks the fence, runs the work and commits. Without a commit if the work returns `false`. */
  commit(work: () => Promise<boolean>): Promise<boolean>;
  abort(): Promise<void>;
}

export interface FencedWrites {
  readonly hasTransactions: boolean;
  /** The work may run several times. */
  run<T>(fence: Fence, work: (session: Session) => Promise<T>): Promise<T>;
  /** Of an administrator: without an owner. */
  unfenced<T>(work: (session: Session) => Promise<T>): Promise<T>;
  begin(fence: Fence): Promise<OpenTransaction>;
  /** Waits for commits of former owners, which fail from now on. */
  raise(key: ShardKey, token: number, session?: Session): Promise<void>;
}

/** How many transactions of a shard may be open at once. */
const fenceSlots = 16;

const writeConflict = 112;
const commitAttemptsMax = 5;

export function fencedWrites(
  db: Db,
  { shards, fences }: SubscriptionCollections,
  { hasTransactions }: { readonly hasTransactions: boolean },
): FencedWrites {
  const slots = slotPools();
  const options = { readConcern: { level: 'snapshot' }, writeConcern: { w: 'majority' } } as const;

  async function checkOwner(fence: Fence): Promise<void> {
    const found = await shards.findOne({ _id: shardIdOf(fence) }, { projection: { token: 1 } });
    if (found?.token !== fence.token) throw leaseLost(fence);
  }

  async function checkIn(fence: Fence, slot: number, session: ClientSession): Promise<void> {
    const { matchedCount } = await fences.updateOne(
      { _id: `${shardIdOf(fence)}/${slot}`, token: fence.token },
      { $inc: { commits: 1 } },
      { session },
    );
    if (matchedCount === 0) throw leaseLost(fence);
  }

  async function transact<T>(work: (session: ClientSession) => Promise<T>): Promise<T> {
    const session = db.client.startSession();
    try {
      return await session.withTransaction(() => work(session), options);
    } finally {
      await session.endSession();
    }
  }

  return {
    hasTransactions,
    async run(fence, work) {
      if (!hasTransactions) {
        await checkOwner(fence);
        return work(undefined);
      }
      const slot = await slots.take(shardIdOf(fence));
      try {
        return await transact(async (session) => {
          await checkIn(fence, slot, session);
          return work(session);
        });
      } finally {
        slots.give(shardIdOf(fence), slot);
      }
    },
    unfenced: (work) => (hasTransactions ? transact(work) : work(undefined)),
    async begin(fence) {
      if (!hasTransactions) throw withoutTransactions(fence);
      const slot = await slots.take(shardIdOf(fence));
      const session = db.client.startSession();
      session.startTransaction(options);
      let hasEnded = false;
      const end = async (): Promise<void> => {
        if (hasEnded) return;
        hasEnded = true;
        try {
          if (session.inTransaction()) await session.abortTransaction();
        } finally {
          slots.give(shardIdOf(fence), slot);
          await session.endSession();
        }
      };
      return {
        session,
        async commit(work) {
          try {
            // Last: before, a takeover would have to wait for the handler.
            await checkIn(fence, slot, session);
            if (!(await work())) return false;
            await commitOf(session);
            return true;
          } catch (error) {
            // A takeover since the start of the transaction is a conflict of the two writes.
            if (codeOf(error) === writeConflict) await checkOwner(fence);
            throw error;
          } finally {
            await end();
          }
        },
        abort: end,
      };
    },
    async raise(key, token, session) {
      if (!hasTransactions) return;
      const id = shardIdOf(key);
      await fences.bulkWrite(
        Array.from({ length: fenceSlots }, (_, slot) => ({
          updateOne: {
            filter: { _id: `${id}/${slot}` },
            update: { $max: { token }, $setOnInsert: { commits: 0 } },
            upsert: true,
          },
        })),
        session === undefined ? {} : { session },
      );
    },
  };
}

/** The result of a commit may be unknown; committing again is safe. */
async function commitOf(session: ClientSession): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await session.commitTransaction();
      return;
    } catch (error) {
      const labels = error as { hasErrorLabel?: (label: string) => boolean };
      const isUnknown = labels.hasErrorLabel?.('UnknownTransactionCommitResult') === true;
      if (!isUnknown || attempt === commitAttemptsMax) throw error;
    }
  }
}

function withoutTransactions({ subscription }: Fence): MillraceError {
  return new MillraceError(
    'NOT_SUPPORTED',
    `${subscription}: this MongoDB server is no replica set and has no transactions: use claim() or the idempotency key`,
    { details: { subscription, capability: 'transactions' } },
  );
}

/** A slot belongs to one open transaction: two in one slot would conflict. */
function slotPools() {
  const pools = new Map<
    string,
    { readonly free: number[]; readonly queue: ((slot: number) => void)[] }
  >();
  return {
    async take(id: string): Promise<number> {
      const pool = pools.get(id) ?? {
        free: Array.from({ length: fenceSlots }, (_, slot) => slot),
        queue: [],
      };
      pools.set(id, pool);
      return pool.free.pop() ?? new Promise((resolve) => pool.queue.push(resolve));
    },
    give(id: string, slot: number): void {
      const pool = pools.get(id);
      const next = pool?.queue.shift();
      if (next === undefined) pool?.free.push(slot);
      else next(slot);
    },
  };
}
