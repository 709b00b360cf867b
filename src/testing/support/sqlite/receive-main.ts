// A process that handles each message once, through the inbox.

import { DatabaseSync } from 'node:sqlite';
import { sqliteInbox } from '../../../engines/sqlite/inbox/inbox.ts';
import { childInput, tellParent } from '../../child-process.ts';

const { path, count } = childInput() as { readonly path: string; readonly count: number };
const database = new DatabaseSync(path, { timeout: 60_000 });
const inbox = sqliteInbox();
const insert = database.prepare('insert into effects (key) values (?)');
tellParent('ready');
process.once('message', () => {
  let handled = 0;
  for (let index = 0; index < count; index += 1) {
    const { kind } = inbox.once(database, `m-${index}`, () => insert.run(`m-${index}`));
    if (kind === 'handled') handled += 1;
  }
  database.close();
  tellParent({ handled });
  process.disconnect?.();
});
