import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { archiveCases } from './archive-cases.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-outbox-'));
after(() => rmSync(folder, { recursive: true, force: true }));

archiveCases('sqlite', async () => `sqlite:${join(folder, 'outbox.db')}`);
