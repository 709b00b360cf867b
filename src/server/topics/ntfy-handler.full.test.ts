// ntfy's API, case by case, against our server; `npm run test:engines -- ntfy` runs the cases against ntfy itself.

import { after, before, describe, it } from 'node:test';
import { createTempFolder, removeTempFolder } from '../../testing/servers/temp-folder.ts';
import { ntfyCases, storedCases } from '../../testing/support/topics/ntfy-cases.ts';
import { startOurNtfy, type OurNtfy } from '../../testing/support/topics/our-ntfy.ts';

const modes = [
  { name: 'our ntfy', durability: 'synced', cases: ntfyCases },
  { name: 'our ntfy, relaxed', durability: 'relaxed', cases: storedCases },
] as const;

for (const { name, durability, cases } of modes)
  describe(name, { concurrency: 8 }, () => {
    const opened = new AsyncDisposableStack();
    let server: OurNtfy;
    before(async () => {
      const folder = await createTempFolder('notify');
      opened.defer(() => removeTempFolder(folder));
      server = opened.use(await startOurNtfy({ folder, more: { durability } }));
    });
    after(() => opened.disposeAsync());

    for (const { title, run } of cases) it(title, () => run(server));
  });
