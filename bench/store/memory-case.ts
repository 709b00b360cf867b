// Memory while catching up: it must not depend on the number of events.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ours, type Case, type Subject } from '../benchmark.ts';
import { openMillrace } from './millrace-store.ts';
import type { NewDatabase } from './databases.ts';
import type { Engine } from './subject-store.ts';

/** Enough to fill all limited caches; more events must not need more memory. */
const aQuarter = 'a quarter of the events';

export function memoryCase(
  engine: Engine,
  newDatabase: NewDatabase,
  { quick }: { readonly quick: boolean },
): Case {
  const total = quick ? 200_000 : 1_000_000;
  const subject = (name: string, events: number): Subject => ({
    name,
    async setup() {
      const address = await newDatabase(engine);
      await fillElsewhere(engine, address, events);
      const store = await openMillrace(engine, address);
      const reader = store.catchUp(events);
      return {
        run: () => reader.take(events),
        async teardown() {
          await reader.close();
          await store.close();
        },
      };
    },
  });
  return {
    name: `catch-up memory / ${engine}`,
    measure: 'memory',
    batch: 1,
    subjects: [subject(ours, total), subject(aQuarter, total / 4)],
    // A quarter of a quick run does not fill the caches.
    goals: quick ? [] : [{ vs: aQuarter, ratioMin: 0.7 }],
  };
}

async function fillElsewhere(engine: Engine, address: string, events: number): Promise<void> {
  const script = fileURLToPath(new URL('fill-main.ts', import.meta.url));
  const child = spawn(process.execPath, [script, engine, address, String(events)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`filling a store failed (exit ${String(code)})`);
}
