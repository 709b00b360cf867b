// Opens a ledger by the name of its engine, for processes that share it.

import type { OutboxLedger } from '../../src/outbox/index.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';
import type { EngineName } from '../store/rig.ts';

export type LedgerEngine = EngineName | 'typeorm';

export interface LedgerAddress {
  readonly engine: LedgerEngine;
  readonly url: string;
}

export async function openLedger({ engine, url }: LedgerAddress): Promise<OutboxLedger> {
  if (engine === 'typeorm') return typeormLedger(url);
  // Loads only this engine, because many short processes call this function.
  if (engine === 'sqlite') {
    const { openSqlite } = await import('../../src/engines/sqlite/index.ts');
    return ownedRole(await openSqlite(url, { busyTimeoutMs: 60_000 }), 'outbox');
  }
  const { openPostgres } = await import('../../src/engines/postgres/index.ts');
  const options = { connectionsMax: 4, roles: ['outbox'] } as const;
  return ownedRole(await openPostgres(url, options), 'outbox');
}

/** Closes its DataSource together with the ledger. */
async function typeormLedger(url: string): Promise<OutboxLedger> {
  const { DataSource } = await import('typeorm');
  const { TypeormOutboxRepository } = await import('../../src/nest/typeorm/index.ts');
  const dataSource = await new DataSource({ type: 'postgres', url, poolSize: 4 }).initialize();
  class OwnRepository extends TypeormOutboxRepository {
    override async [Symbol.asyncDispose](): Promise<void> {
      await super[Symbol.asyncDispose]();
      await dataSource.destroy();
    }
  }
  return new OwnRepository(dataSource);
}
