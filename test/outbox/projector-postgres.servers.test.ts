import type { ClientBase } from 'pg';
import { postgresEventStore, postgresOutboxLedger } from '../../src/engines/postgres/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { projectorCases } from './projector-cases.ts';

projectorCases<ClientBase>('postgres', async () => {
  const { url } = await sharedPostgres();
  const store = await postgresEventStore(url);
  const ledger = await postgresOutboxLedger(url);
  return {
    store,
    ledger,
    async [Symbol.asyncDispose]() {
      await ledger[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
});
