import { join } from 'node:path';
import { createTempFolder, removeTempFolder } from '../../src/testing/servers/temp-folder.ts';
import { testTogether } from './ntfy-together.ts';

testTogether('SQLite', async () => {
  const folder = await createTempFolder('notify');
  return {
    url: `sqlite:${join(folder, 'bus.db')}`,
    [Symbol.asyncDispose]: () => removeTempFolder(folder),
  };
});
