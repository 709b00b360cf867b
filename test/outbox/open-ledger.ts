// A ledger by the engine's name, for processes that share one.

import { postgresOutboxLedger } from '../../src/adapters/postgres/index.ts';
import { sqliteOutboxLedger } from '../../src/adapters/sqlite/index.ts';
import type { OutboxLedger } from '../../src/outbox/index.ts';
import type { EngineName } from '../store/rig.ts';

export type LedgerEngine = EngineName | 'typeorm';

export interface LedgerPlace {
  readonly engine: LedgerEngine;
  readonly url: string;
}

export async function openLedger({ engine, url }: LedgerPlace): Promise<OutboxLedger> {
  if (engine === 'typeorm') return typeormLedger(url);
  return engine === 'sqlite'
    ? sqliteOutboxLedger(url, { busyTimeoutMs: 60_000 })
    : postgresOutboxLedger(url, { connectionsMax: 4 });
}

/** Ends its DataSource with it. */
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
