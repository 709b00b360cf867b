import { join } from 'node:path';
import { createTempFolder, removeTempFolder } from '../../testing/servers/temp-folder.ts';
import { testSeveralProcesses } from '../../testing/support/topics/several-processes.ts';

testSeveralProcesses('SQLite', async () => {
  const folder = await createTempFolder('notify');
  return {
    url: `sqlite:${join(folder, 'bus.db')}`,
    [Symbol.asyncDispose]: () => removeTempFolder(folder),
  };
});
