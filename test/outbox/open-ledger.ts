// A ledger by the engine's name, for processes that share one.

import { postgresOutboxLedger } from '../../src/adapters/postgres/index.ts';
import { sqliteOutboxLedger } from '../../src/adapters/sqlite/index.ts';
import type { OutboxLedger } from '../../src/outbox/index.ts';
import type { EngineName } from '../store/rig.ts';

export interface LedgerPlace {
  readonly engine: EngineName;
  readonly url: string;
}

export async function openLedger({ engine, url }: LedgerPlace): Promise<OutboxLedger> {
  return engine === 'sqlite'
    ? sqliteOutboxLedger(url, { busyTimeoutMs: 60_000 })
    : postgresOutboxLedger(url, { connectionsMax: 4 });
}
