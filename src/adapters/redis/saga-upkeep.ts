// Whether the index in Redis may lack something. A server that was started again, or took another's
// place, may have lost what it acknowledged: only what was put since then counts as whole.

import { randomUUID } from 'node:crypto';
import { hasCode } from '../../foundation/error.ts';
import type { SagaIndexUpkeep } from '../../reactors/saga-index.ts';
import type { RedisConnection } from './redis-connection.ts';
import { mastersOf } from './redis-risks.ts';
import { sagaScripts } from './saga-scripts.ts';
import { sagaSpace } from './saga-space.ts';

export function sagaUpkeep(connection: RedisConnection): SagaIndexUpkeep {
  const { run } = connection;
  return {
    async incomplete({ saga, shards }) {
      if (shards.length === 0) return [];
      const { losses, due } = sagaSpace(saga);
      const servers = await serversOf(connection);
      const marks = await run(sagaScripts.marks, [losses, ...shards.map(due)], [servers]);
      return shards.filter((_, at) => (marks as readonly number[])[at] === 0);
    },
    async renew({ saga, shards }) {
      const { losses, due } = sagaSpace(saga);
      const keys = shards.map(due);
      const renewal = randomUUID();
      // Asked before the first entry is put: a server that is started again meanwhile has another name.
      const servers = await serversOf(connection);
      const lostSoFar = String(await run(sagaScripts.renew, [losses, ...keys], [renewal]));
      return async () => {
        await run(sagaScripts.renewed, keys, [renewal, servers, lostSoFar]);
      };
    },
  };
}

/** Another text as soon as one of the servers is another process. */
async function serversOf(connection: RedisConnection): Promise<string> {
  const names = await Promise.all(
    mastersOf(connection.client).map(async (node) => {
      try {
        const info = await connection.ask(() => node.info('server'));
        return /^run_id:(\w+)/m.exec(info)?.[1] ?? '';
      } catch (error) {
        // Hosted ones may not tell: what is lost as a whole is noticed all the same.
        if (hasCode(error, 'STORE_UNAVAILABLE') && !error.retryable) return '';
        throw error;
      }
    }),
  );
  return names.toSorted().join('+');
}
