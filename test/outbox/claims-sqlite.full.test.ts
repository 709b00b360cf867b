import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { claimCases } from './claim-cases.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-outbox-'));
after(() => rmSync(folder, { recursive: true, force: true }));

claimCases('sqlite', async () => `sqlite:${join(folder, 'outbox.db')}`);
