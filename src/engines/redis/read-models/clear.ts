// Removes one version of a model. No list of its tenants is stored, so a scan of all keys finds them.

import { parseRedisKey } from '../../../contracts/redis-keys.ts';
import type { ModelKey } from '../../../projections/read-model-store.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { mastersOf } from '../connection/risks.ts';
import { readModelKeyspace } from './keyspace.ts';
import type { DocumentWriter } from './writer.ts';

/** Removes about `limit` documents; returns 0 when no tenant has any. */
export type ClearReadModel = (model: ModelKey, limit: number) => Promise<number>;

const scanCount = 1_000;

/** Scans all keys of the server at the start, and again when no known tenant has documents left. */
export function createClearReadModel(
  connection: RedisConnection,
  writer: DocumentWriter,
): ClearReadModel {
  const found = new Map<string, string[]>();

  async function step(model: ModelKey, tenant: string, limit: number): Promise<number> {
    const fences = readModelKeyspace(model, tenant, 'json').meta('fences');
    const [, rows] = await connection.ask((client) => client.hscan(fences, '0', 'COUNT', limit));
    return writer.forget(
      model,
      tenant,
      rows.filter((_, at) => at % 2 === 0),
    );
  }

  return async (model, limit) => {
    const name = `${model.bc}:${model.aggregate}:${model.version}`;
    for (;;) {
      const tenants = found.get(name) ?? (await tenantsOf(connection, model));
      found.set(name, tenants);
      const [tenant] = tenants;
      if (tenant === undefined) {
        found.delete(name);
        return 0;
      }
      const removed = await step(model, tenant, limit);
      if (removed > 0) return removed;
      tenants.shift();
      // Tenants may have been added since the last scan.
      if (tenants.length === 0) found.delete(name);
    }
  };
}

async function tenantsOf(
  connection: RedisConnection,
  { bc, aggregate, version }: ModelKey,
): Promise<string[]> {
  const { client } = connection;
  const prefix = client.options.keyPrefix ?? '';
  const match = `${escapeGlob(prefix)}app:{*}:${bc}:${aggregate}:v${version}:meta:fences`;
  const tenants = new Set<string>();
  for (const node of mastersOf(client)) {
    let cursor = '0';
    do {
      const from = cursor;
      const page = await connection.ask(() => node.scan(from, 'MATCH', match, 'COUNT', scanCount));
      [cursor] = page;
      for (const key of page[1]) {
        const parsed = parseRedisKey(key.slice(prefix.length));
        if (parsed.kind === 'meta') tenants.add(parsed.tenant);
      }
    } while (cursor !== '0');
  }
  return [...tenants];
}

function escapeGlob(text: string): string {
  return text.replaceAll(/[[\]*?\\^]/g, String.raw`\$&`);
}
