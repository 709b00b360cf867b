import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import { pathOf } from '../../src/engines/sqlite/connection/path.ts';
import { killCases } from './kill-cases.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-outbox-'));
after(() => rmSync(folder, { recursive: true, force: true }));

killCases('sqlite', async () => `sqlite:${join(folder, `${randomUUID()}.db`)}`, {
  async remainingMs(url) {
    using database = new DatabaseSync(pathOf(url), { timeout: 60_000 });
    const rows = database
      .prepare(
        "select available_at_ms - unixepoch('subsec') * 1000 as ms from outbox_ready where token <> 0",
      )
      .all();
    return rows.map(({ ms }) => Number(ms));
  },
  async expire(url) {
    using database = new DatabaseSync(pathOf(url), { timeout: 60_000 });
    database.exec('update outbox_ready set available_at_ms = 0');
  },
});
