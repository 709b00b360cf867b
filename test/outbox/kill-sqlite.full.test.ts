import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { killCases } from './kill-cases.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-outbox-'));
after(() => rmSync(folder, { recursive: true, force: true }));

killCases('sqlite', async () => `sqlite:${join(folder, `${randomUUID()}.db`)}`);
