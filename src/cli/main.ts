#!/usr/bin/env node
// The program. What was compiled once is kept, which halves the time that a start takes; where it cannot
// be kept, nothing else changes.

import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// In the folder of whoever installed us, not in a shared one where others could lay code for us.
const [, installed] = /^(.*[\\/]node_modules[\\/])/.exec(import.meta.filename) ?? [];
const folder = installed ?? fileURLToPath(new URL('../../node_modules/', import.meta.url));
enableCompileCache(`${folder}.cache/millrace`);
await import('./run-process.ts');
