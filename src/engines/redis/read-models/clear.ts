// Removes one version of a model. No list of its tenants is stored, so a scan of all keys finds them.

import { parseRedisKey } from '../../../contracts/redis-keys.ts';
import type { ModelKey } from '../../../projections/read-model-store.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { escapeGlob, scanKeys } from '../connection/engine.ts';
import { readModelKeyspace } from './keyspace.ts';
import type { DocumentWriter } from './writer.ts';

/** Removes about `limit` documents and returns their number; 0 if no tenant has documents. */
export type ClearReadModel = (model: ModelKey, limit: number) => Promise<number>;

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
  const { keyPrefix = '' } = connection.client.options;
  const match = `${escapeGlob(keyPrefix)}app:{*}:${bc}:${aggregate}:v${version}:meta:fences`;
  const keys = await scanKeys(connection, match, 'hash');
  const tenants = keys.flatMap((key) => {
    const parsed = parseRedisKey(key.slice(keyPrefix.length));
    return parsed.kind === 'meta' ? [parsed.tenant] : [];
  });
  return [...new Set(tenants)];
}
