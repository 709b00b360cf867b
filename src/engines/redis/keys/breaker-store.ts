// Circuit breakers shared by processes, in one Redis hash with a field for each destination whose breaker is
// not closed. Scripts compare times with the server's clock.

import type { BreakerStore } from '../../../delivery/breaker-store.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { loadScripts } from '../connection/script.ts';

const scripts = loadScripts(new URL('scripts/', import.meta.url), [
  'openBreaker',
  'probeBreaker',
  'closeBreaker',
  'listBreakers',
]);

export function redisBreakerStore(
  { run }: RedisConnection,
  key = 'millrace:breakers',
): BreakerStore {
  const keys = [key];
  return {
    async list() {
      const rows = (await run(scripts.listBreakers, keys, [])) as [string, number, number][];
      return rows.map(([destination, openForMs, openings]) => ({
        destination,
        openForMs,
        openings,
      }));
    },
    async open(destination, { forMs, openings }) {
      await run(scripts.openBreaker, keys, [destination, Math.ceil(forMs), openings]);
    },
    async probe(destination, { holder, forMs }) {
      return (await run(scripts.probeBreaker, keys, [destination, holder, Math.ceil(forMs)])) === 1;
    },
    async close(destination, holder) {
      return (await run(scripts.closeBreaker, keys, [destination, holder])) === 1;
    },
  };
}
