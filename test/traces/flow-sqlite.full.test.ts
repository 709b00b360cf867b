import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { flowCases } from './flow-cases.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-flow-'));
after(() => rmSync(folder, { recursive: true, force: true }));

flowCases('sqlite', async () => ({ store: `sqlite:${join(folder, 'events.db')}` }));
