// Stream mode in PostgreSQL: between the port and the functions in the database.

import { MillraceError } from '../../foundation/error.ts';
import type {
  LaneBatch,
  LaneChange,
  LaneMessage,
  OutboxStreams,
} from '../../outbox/outbox-streams.ts';
import type { PreparedSql, Row } from './postgres-connection.ts';
import { toLaneMessage } from './postgres-outbox-rows.ts';

export interface PostgresStreamsOptions {
  readonly lockClass: number;
  readonly statement: (name: string, text: string) => PreparedSql;
  readonly ask: (sql: PreparedSql, values: readonly unknown[]) => Promise<readonly Row[]>;
}

export function postgresOutboxStreams({
  lockClass,
  statement,
  ask,
}: PostgresStreamsOptions): Required<OutboxStreams> {
  const declareSql = statement('declare', 'select {schema}.stream_declare($1, $2)');
  const retireSql = statement('retire', 'select {schema}.stream_retire($1)');
  const acquireSql = statement(
    'acquire',
    'select * from {schema}.stream_acquire($1, $2, $3, $4, $5)',
  );
  const declaredSql = statement(
    'declared',
    'select integration_type, lanes from {schema}.stream_destinations order by integration_type',
  );
  const exchangeSql = statement(
    'lanes',
    `select * from {schema}.stream_exchange($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
  );

  return {
    async declare(integrationType, options) {
      const [[answer] = []] = await ask(declareSql, [integrationType, options?.lanes]);
      return isChanged(integrationType, String(answer));
    },
    async retire(integrationType) {
      const [[answer] = []] = await ask(retireSql, [integrationType]);
      return isChanged(integrationType, String(answer));
    },
    async declared() {
      const rows = await ask(declaredSql, []);
      return rows.map(([type, lanes]) => ({ integrationType: String(type), lanes: Number(lanes) }));
    },
    async acquire({ workerId, integrationTypes, leaseMs, giveBack }) {
      const rows = await ask(acquireSql, [
        workerId,
        integrationTypes,
        leaseMs,
        giveBack.map(({ lane }) => lane),
        giveBack.map(({ epoch }) => epoch),
      ]);
      return rows.map(([lane, type, epoch, share]) => ({
        integrationType: String(type),
        lane: Number(lane),
        epoch: Number(epoch),
        share: Number(share),
      }));
    },
    async exchange(outcomes, fetch) {
      const changes = outcomes.flatMap(({ claim, changes: all }) =>
        all.map((change) => ({ lane: claim.lane, change })),
      );
      const lanes = fetch?.lanes ?? [];
      const rows = await ask(exchangeSql, [
        lockClass,
        outcomes.map(({ claim }) => claim.lane),
        outcomes.map(({ claim }) => claim.epoch),
        outcomes.map(({ number }) => number),
        outcomes.map(({ upTo }) => upTo ?? null),
        changes.map(({ lane }) => lane),
        changes.map(({ change }) => change.position),
        changes.map(({ change }) => change.kind),
        changes.map(({ change }) => ('error' in change ? change.error : null)),
        changes.map(({ change }) => dueMs(change)),
        lanes.map(({ claim }) => claim.lane),
        lanes.map(({ claim }) => claim.epoch),
        lanes.map(({ limit }) => limit),
        fetch?.bytesMax ?? 0,
        fetch?.leaseMs ?? 0,
      ]);
      const done = new Set<number>();
      const claims = new Map(lanes.map(({ claim }) => [claim.lane, claim]));
      const batches = new Map<number, LaneBatch & { readonly items: LaneMessage[] }>();
      let isHeldBack = false;
      let nextDueAt: Date | undefined;
      for (const row of rows) {
        const [kind, lane, seq, isParked, mustWait, number] = row;
        if (Number(kind) === 0) done.add(Number(lane));
        else if (Number(kind) === 2) {
          isHeldBack = isParked === true;
          nextDueAt = row[9] === null ? undefined : new Date(Number(row[9]));
        } else {
          const claim = claims.get(Number(lane));
          if (claim === undefined) continue;
          const batch = batches.get(claim.lane) ?? { claim, number: Number(number), items: [] };
          batches.set(claim.lane, batch);
          const token = `${claim.lane}.${claim.epoch}`;
          batch.items.push({
            message: toLaneMessage(row.slice(6), token),
            position: Number(seq),
            isParked: isParked === true,
            mustWait: mustWait === true,
          });
        }
      }
      return {
        settled: outcomes.map(({ claim }) => (done.has(claim.lane) ? 'settled' : 'stale')),
        batches: [...batches.values()],
        isHeldBack,
        nextDueAt,
      };
    },
  };
}

function dueMs(change: LaneChange): number | null {
  if (change.kind === 'failed') return change.nextDueAt.getTime();
  return change.kind === 'waits' ? (change.dueAt?.getTime() ?? null) : null;
}

const busy: Readonly<Record<string, string>> = {
  waiting: 'has messages that wait: let them be sent, then change its mode',
  otherwise: 'has another number of lanes: retire it first',
  busy: 'is being enqueued for by a transaction that stays open: try again when it has ended',
};

function isChanged(integrationType: string, answer: string): boolean {
  const reason = busy[answer];
  if (reason === undefined) return answer === 'done';
  throw new MillraceError('OUTBOX_STREAM_BUSY', `'${integrationType}' ${reason}`, {
    details: { integrationType, reason: answer },
  });
}
