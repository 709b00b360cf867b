// ntfy's API, case by case, against our server; `npm run test:engines -- ntfy` runs the cases against ntfy itself.

import { after, before, describe, it } from 'node:test';
import { createTempFolder, removeTempFolder } from '../../testing/servers/temp-folder.ts';
import { ntfyCases } from '../../testing/support/topics/ntfy-cases.ts';
import { startOurNtfy, type OurNtfy } from '../../testing/support/topics/our-ntfy.ts';

describe('our ntfy', { concurrency: 8 }, () => {
  const opened = new AsyncDisposableStack();
  let server: OurNtfy;
  before(async () => {
    const folder = await createTempFolder('notify');
    opened.defer(() => removeTempFolder(folder));
    server = opened.use(await startOurNtfy({ folder }));
  });
  after(() => opened.disposeAsync());

  for (const { title, run } of ntfyCases) it(title, () => run(server));
});
